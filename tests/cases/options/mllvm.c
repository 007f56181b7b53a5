// An option for LLVM itself, which lld does not hand on to its distributor by itself.
//# modules: 3
//# link: %objects -Wl,-mllvm,-import-instr-limit=0
//# remote: -mllvm
//# remote: -import-instr-limit=0
//# not for coff: the option has another spelling
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
