// An archive and a member with spaces, parentheses and a semicolon.
//# modules: 2
//# step: mv part.o "p;art (1).o"
//# step: %ar rcs "lib x (2);.a" "p;art (1).o"
//# link: main.o "lib x (2);.a"
//--- main.c
#include <stdio.h>
int part(int);
int main(void) {
  printf("%d\n", part(6));
  return 0;
}
//--- part.c
int part(int x) { return x * 7; }
