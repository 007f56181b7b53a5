// An archive is named again after --whole-archive: nothing is left to be loaded.
//# step: %ar rcs libx.a a.o
//# link: main.o -Wl,--whole-archive libx.a -Wl,--no-whole-archive libx.a
//# modules: 2
//# not for macho: the option is ELF's
//--- main.c
#include <stdio.h>
int a(int);
int main(void) {
  printf("%d\n", a(1));
  return 0;
}
//--- a.c
int a(int x) { return x - 1; }
