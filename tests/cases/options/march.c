// Instructions chosen for a processor, at compilation and at the link.
//# modules: 3
//# flags: -march=x86-64-v2 -mtune=generic
//# link: %objects -march=x86-64-v2
//# not for macho wasm: the processor is x86-64's
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
