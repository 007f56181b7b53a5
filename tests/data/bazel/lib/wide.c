// Imported by main.c and middle.c.
#include "lib/lib.h"

int wide(int x) { return x + 10; }
