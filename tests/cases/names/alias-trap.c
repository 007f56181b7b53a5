// One object as a real input and again as a lazy one under another spelling.
//# modules: 2
//# link: main.o part.o -Wl,--start-lib ./part.o %work/part.o -Wl,--end-lib
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
