// The whole link in a response file.
//# modules: 2
//# driver: %clang
//# link: @%dir/link.rsp
//--- link.rsp
-O2 -flto=thin -fuse-ld=lld
-o %out main.o part.o
//--- main.c
#include <stdio.h>
int part(int);
int main(void) {
  printf("%d\n", part(6));
  return 0;
}
//--- part.c
int part(int x) { return x * 7; }
