// The lazy spelling comes first and is extracted; the real one would define everything again, so only lazies follow.
//# modules: 2
//# link: main.o -Wl,--start-lib ./part.o part.o %work/part.o -Wl,--end-lib
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
