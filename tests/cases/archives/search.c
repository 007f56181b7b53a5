// -L and -l in several spellings.
//# modules: 4
//# step: mkdir -p one two
//# step: %ar rcs one/liba.a a.o
//# step: %ar rcs two/libb.a b.o unused.o
//# step: %ar rcs two/libh.a helper.o
//# link: main.o -Lone -L two -la -l b -l:libh.a
//# not for macho coff: the options are ELF's
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
