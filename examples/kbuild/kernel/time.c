#include "kernel.h"

int time_now(void) { return 21; }
