// The link line does not say -flto: lld finds the bitcode by itself.
//# modules: 2
//# driver: %clang -O2 -fuse-ld=lld -o %out
//# link: %objects
//# without dtlto: clang hands over a distributor only with -flto=thin
//--- main.c
#include <stdio.h>
int part(int);
int main(void) {
  printf("%d\n", part(6));
  return 0;
}
//--- part.c
int part(int x) { return x * 7; }
