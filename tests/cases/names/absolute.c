// Absolute and relative paths together.
//# modules: 2
//# link: %work/main.o ./part.o
//--- main.c
#include <stdio.h>
int part(int);
int main(void) {
  printf("%d\n", part(6));
  return 0;
}
//--- part.c
int part(int x) { return x * 7; }
