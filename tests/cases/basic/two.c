// A call that is inlined across files.
//# modules: 2
//--- main.c
#include <stdio.h>
int twice(int);
int main(void) {
  printf("%d\n", twice(21));
  return 0;
}
//--- twice.c
int twice(int x) { return 2 * x; }
