// A function chosen at load time. (LLVM 14 loses it in ThinLTO, in-process too.)
//# llvm: >=15
//# modules: 2
//# not for coff mingw: the format has no such functions
//--- main.c
#include <stdio.h>
int chosen(int);
int main(void) {
  printf("%d\n", chosen(2));
  return 0;
}
//--- chosen.c
static int first(int x) { return x + 1; }
static int (*resolve(void))(int) { return first; }
int chosen(int) __attribute__((ifunc("resolve")));
