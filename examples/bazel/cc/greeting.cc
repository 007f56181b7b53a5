#include "cc/greeting.h"

const char *greeting() { return "hello"; }
