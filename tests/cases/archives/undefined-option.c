// -u extracts a member that nothing refers to.
//# modules: 5
//# step: %ar rcs libx.a a.o b.o helper.o unused.o
//# link: main.o -Wl,-u,unused libx.a
//# not for macho coff: symbols begin with an underscore, or the option is ELF's
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
