// Archives of native code only, in a link that has bitcode.
//# modules: 1
//# flags a.c: -fno-lto
//# flags b.c: -fno-lto
//# flags helper.c: -fno-lto
//# step: %ar rcs libx.a a.o b.o helper.o
//# link: main.o libx.a
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
