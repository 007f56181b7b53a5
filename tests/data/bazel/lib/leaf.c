// Imported by nobody.
#include "lib/lib.h"

__attribute__((noinline)) int leaf(int x) { return x - 1; }
