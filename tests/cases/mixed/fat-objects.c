// FatLTO objects, whose bitcode the linker is told to use.
//# llvm: >=19
//# modules: 3
//# flags: -ffat-lto-objects
//# link: %objects -ffat-lto-objects
//# not for macho wasm coff mingw: clang makes no fat objects there, or a distributor compiles none
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
