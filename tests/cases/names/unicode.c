// Letters beyond ASCII.
//# without dtlto: lld 22 writes bytes beyond ASCII wrongly into the module paths of its shards
//# modules: 2
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
