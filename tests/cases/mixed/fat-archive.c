// FatLTO members of an archive among plain bitcode.
//# llvm: >=19
//# modules: 3
//# flags other.c: -ffat-lto-objects
//# flags again.c: -ffat-lto-objects
//# step: %ar rcs libx.a other.o again.o
//# link: main.o libx.a -ffat-lto-objects
//# not for macho wasm mingw: clang makes no fat objects there, or a distributor compiles none
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
