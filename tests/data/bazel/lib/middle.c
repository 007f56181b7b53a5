// Imports from wide.c; imported by main.c.
#include "lib/lib.h"

int middle(int x) { return 2 * wide(x); }
