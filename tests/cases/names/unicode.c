// Letters beyond ASCII: lld writes such module paths wrongly into its shards, so such an object gets an alias in two steps, and
// is the linker's own to compile where that is served.
//# modules: 2
//# own: 2
//# without dtlto: lld's distributor is given such paths wrongly
//# step: mv part.o pärt-部分-🧩.o
//# link: main.o pärt-部分-🧩.o
//--- main.c
#include <stdio.h>
int part(int);
int main(void) {
  printf("%d\n", part(6));
  return 0;
}
//--- part.c
int part(int x) { return x * 7; }
