// lld 23 has its backends interchange loops where clang by itself does not: a linker is asked what it tells them.
//# llvm: >=22
//# not for coff: needs a library
//--- main.c
#include <stdio.h>
void add(double (*a)[512], double (*b)[512]);
static double a[512][512], b[512][512];
int main(void) {
  b[3][4] = 5;
  add(a, b);
  printf("%g\n", a[3][4]);
  return 0;
}
//--- add.c
enum { N = 512 };
__attribute__((noinline)) void add(double (*restrict a)[N], double (*restrict b)[N]) {
  for (int j = 0; j < N; j++)
    for (int i = 0; i < N; i++)
      a[i][j] = a[i][j] + b[i][j];
}
