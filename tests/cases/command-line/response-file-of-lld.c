// A response file handed on to the linker.
//# modules: 2
//# link: -Wl,@%dir/link.rsp
//--- link.rsp
main.o part.o
//--- main.c
#include <stdio.h>
int part(int);
int main(void) {
  printf("%d\n", part(6));
  return 0;
}
//--- part.c
int part(int x) { return x * 7; }
