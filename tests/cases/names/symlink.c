// An object and its symbolic link, the latter never extracted.
//# modules: 2
//# step: ln -s part.o link.o
//# link: main.o part.o -Wl,--start-lib link.o -Wl,--end-lib
//# not for mingw: the options are ELF's
//--- main.c
#include <stdio.h>
int part(int);
int main(void) {
  printf("%d\n", part(6));
  return 0;
}
//--- part.c
int part(int x) { return x * 7; }
