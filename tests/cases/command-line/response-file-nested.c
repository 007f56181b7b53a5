// A response file that names another, with quotes and escapes.
//# modules: 2
//# step: mv part.o "a part's object.o"
//# driver: %clang
//# link: -o %out @%dir/outer.rsp
//--- outer.rsp
-O2 "-flto=thin" -fuse-ld=lld @%dir/inner.rsp
//--- inner.rsp
'main.o' "a part's object.o"
//--- main.c
#include <stdio.h>
int part(int);
int main(void) {
  printf("%d\n", part(6));
  return 0;
}
//--- part.c
int part(int x) { return x * 7; }
