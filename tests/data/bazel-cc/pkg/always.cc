#include "pkg/registry.h"
static int once = add();
