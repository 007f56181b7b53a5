// Frame pointers, stack protectors and unwind tables are attributes of functions and must survive.
//# modules: 3
//# flags: -fno-omit-frame-pointer -fstack-protector-all -fno-asynchronous-unwind-tables
//# not for coff mingw: needs a library
//--- main.c
#include <stdio.h>
int other(int), again(int);
int table[4] = {1, 2, 3, 4};
int main(void) {
  printf("%d %d\n", other(1), again(2));
  return 0;
}
//--- other.c
extern int table[4];
static int __attribute__((noinline)) scale(int x) { return x * table[x]; }
int other(int x) { return scale(x) + 5; }
//--- again.c
int other(int);
int again(int x) { return other(x) * other(x + 1); }
