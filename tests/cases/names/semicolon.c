// Semicolons, which lld's prefix and suffix options split at.
//# modules: 2
//# step: mkdir -p "a;dir"
//# step: mv part.o "a;dir/p;art.o"
//# link: main.o "a;dir/p;art.o"
//--- main.c
#include <stdio.h>
int part(int);
int main(void) {
  printf("%d\n", part(6));
  return 0;
}
//--- part.c
int part(int x) { return x * 7; }
