// The output's name glued to its option, and flags after the objects.
//# modules: 2
//# driver: %clang
//# link: main.o part.o -o%out -fuse-ld=lld -flto=thin -O2
//--- main.c
#include <stdio.h>
int part(int);
int main(void) {
  printf("%d\n", part(6));
  return 0;
}
//--- part.c
int part(int x) { return x * 7; }
