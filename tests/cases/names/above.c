// An object above the working directory.
//# modules: 2
//# step: mv part.o ../part-of-above.o
//# link: main.o ../part-of-above.o
//--- main.c
#include <stdio.h>
int part(int);
int main(void) {
  printf("%d\n", part(6));
  return 0;
}
//--- part.c
int part(int x) { return x * 7; }
