// Aliases of functions and of variables, used from another file.
//# modules: 2
//# not for macho: the format has no aliases
//--- main.c
#include <stdio.h>
int real(int), other(int), weak_alias(int);
extern int number, also;
int main(void) {
  also = 9;
  printf("%d %d %d %d\n", real(1), other(2), weak_alias(3), number);
  return 0;
}
//--- defined.c
int real(int x) { return x + 100; }
int other(int) __attribute__((alias("real")));
int weak_alias(int) __attribute__((weak, alias("real")));
int number = 1;
extern int also __attribute__((alias("number")));
