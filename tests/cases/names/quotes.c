// Both quotes, a backslash and a dollar in names.
//# modules: 2
//# step: mv part.o "p'a\"r\\t\$.o"
//# link: main.o "p'a\"r\\t\$.o"
//--- main.c
#include <stdio.h>
int part(int);
int main(void) {
  printf("%d\n", part(6));
  return 0;
}
//--- part.c
int part(int x) { return x * 7; }
