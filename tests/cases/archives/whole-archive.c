// --whole-archive extracts every member, asked for or not.
//# modules: 5
//# step: %ar rcs libx.a a.o b.o helper.o unused.o
//# link: main.o -Wl,--whole-archive libx.a -Wl,--no-whole-archive
//# not for macho: the option is ELF's
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
