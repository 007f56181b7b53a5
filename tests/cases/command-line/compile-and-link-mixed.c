// A source and an object on the link line.
//# modules: 2
//# link: main.c part.o
//# not for macho wasm coff: the link compiles, without the declarations
//--- main.c
#include <stdio.h>
int part(int);
int main(void) {
  printf("%d\n", part(6));
  return 0;
}
//--- part.c
int part(int x) { return x * 7; }
