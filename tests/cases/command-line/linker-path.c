// The linker named by path.
//# modules: 2
//# driver: %clang -O2 -flto=thin -o %out
//# link: %objects --ld-path=%lld
//--- main.c
#include <stdio.h>
int part(int);
int main(void) {
  printf("%d\n", part(6));
  return 0;
}
//--- part.c
int part(int x) { return x * 7; }
