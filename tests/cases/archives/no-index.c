// An archive without a symbol index.
//# modules: 4
//# step: %ar rcS libx.a a.o b.o helper.o unused.o
//# link: main.o libx.a
//# not for coff mingw: without an index no member is found
//--- main.c
#include <stdio.h>
int a(int), b(int);
int main(void) {
  printf("%d %d\n", a(1), b(2));
  return 0;
}
//--- a.c
int helper(int);
int a(int x) { return helper(x) + 1; }
//--- b.c
int helper(int);
int b(int x) { return helper(x) + 2; }
//--- helper.c
int helper(int x) { return 10 * x; }
//--- unused.c
int unused(int x) { return 3 * x; }
