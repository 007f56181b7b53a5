// Compiled and linked at -O0.
//# modules: 3
//# flags: -O0
//# without graph: clang generates code at level 0, lld at level 2
//# link: %objects -O0
//# not for mingw: clang generates code at level 0, lld at level 2
//--- main.c
#include <stdio.h>
int other(int), again(int);
int table[4] = {1, 2, 3, 4};
int main(void) {
  printf("%d %d\n", other(1), again(2));
  return 0;
}
//--- other.c
extern int table[4];
static int __attribute__((noinline)) scale(int x) { return x * table[x]; }
int other(int x) { return scale(x) + 5; }
//--- again.c
int other(int);
int again(int x) { return other(x) * other(x + 1); }
