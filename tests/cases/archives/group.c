// Archives that need each other, in a group.
//# modules: 4
//# step: %ar rcs liba.a a.o b.o
//# step: %ar rcs libh.a helper.o unused.o
//# link: -Wl,--start-group liba.a libh.a -Wl,--end-group main.o
//# not for macho wasm: groups are an option of ELF's linkers
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
