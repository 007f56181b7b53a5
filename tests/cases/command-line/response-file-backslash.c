// Escaped spaces and quotes in a response file.
//# modules: 2
//# step: mv part.o "a part's object.o"
//# driver: %clang -O2 -flto=thin -fuse-ld=lld -o %out
//# link: @%dir/link.rsp
//--- link.rsp
main.o a\ part\'s\ object.o
//--- main.c
#include <stdio.h>
int part(int);
int main(void) {
  printf("%d\n", part(6));
  return 0;
}
//--- part.c
int part(int x) { return x * 7; }
