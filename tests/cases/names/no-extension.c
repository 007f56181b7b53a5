// An object whose name has no extension, and one with another's.
//# modules: 2
//# step: mv part.o part
//# step: mv main.o main.c.lo
//# link: main.c.lo part
//--- main.c
#include <stdio.h>
int part(int);
int main(void) {
  printf("%d\n", part(6));
  return 0;
}
//--- part.c
int part(int x) { return x * 7; }
