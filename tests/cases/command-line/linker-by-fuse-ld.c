// The linker's path in -fuse-ld.
//# modules: 2
//# driver: %clang -O2 -flto=thin -Wno-fuse-ld-path -o %out
//# link: %objects -fuse-ld=%lld
//--- main.c
#include <stdio.h>
int part(int);
int main(void) {
  printf("%d\n", part(6));
  return 0;
}
//--- part.c
int part(int x) { return x * 7; }
