// An archive of bitcode that only a linker script names. Two steps refuse it, since its members could not be replaced.
//# without dtlto: lld 22 loses the name of an archive that only a script names
//# step: %ar rcs libreal.a a.o b.o helper.o unused.o
//# link: main.o -L. -lx
//# not for macho wasm coff mingw: no other linker reads such a script
//--- libx.a
INPUT(libreal.a)
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
