// Paths with .. and doubled slashes; ids are the linker's spelling.
//# modules: 2
//# step: mkdir -p x/y
//# step: mv part.o x/part.o
//# link: x/../main.o x/y/..//part.o
//--- main.c
#include <stdio.h>
int part(int);
int main(void) {
  printf("%d\n", part(6));
  return 0;
}
//--- part.c
int part(int x) { return x * 7; }
