// Letters beyond ASCII: lld writes such module paths wrongly into its shards.
//# modules: 2
//# not for coff mingw: a distributor cannot name an input beyond ASCII
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
