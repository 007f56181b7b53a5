// Weak definitions overridden by strong ones, weak references that stay undefined.
//# modules: 3
//--- main.c
#include <stdio.h>
int value(void), only_weak(void);
__attribute__((weak)) int missing(void);
int main(void) {
  printf("%d %d %d\n", value(), only_weak(), missing ? missing() : -1);
  return 0;
}
//--- weak.c
__attribute__((weak)) int value(void) { return 1; }
__attribute__((weak)) int only_weak(void) { return 2; }
//--- strong.c
int value(void) { return 10; }
