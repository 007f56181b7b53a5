// Sources on the link line: compiled and linked by one command.
//# modules: 2
//# compile: none
//# link: main.c part.c
//--- main.c
#include <stdio.h>
int part(int);
int main(void) {
  printf("%d\n", part(6));
  return 0;
}
//--- part.c
int part(int x) { return x * 7; }
