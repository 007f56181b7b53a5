// --start-lib gives objects the semantics of archive members.
//# modules: 4
//# link: main.o -Wl,--start-lib a.o b.o helper.o unused.o -Wl,--end-lib
//# not for mingw: the options are ELF's
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
