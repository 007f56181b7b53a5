// Common symbols of different sizes, merged across files and with native code.
//# modules: 2
//# flags: -fcommon
//# flags native.c: -fno-lto
//# not for wasm: the format has no common symbols
//--- main.c
#include <stdio.h>
int table[4];
int fill(void), sum(void);
int main(void) {
  fill();
  printf("%d\n", sum());
  return 0;
}
//--- fill.c
int table[8];
int fill(void) {
  for (int i = 0; i < 8; i++)
    table[i] = i;
  return 0;
}
//--- native.c
int table[2];
int sum(void) {
  int total = 0;
  for (int i = 0; i < 8; i++)
    total += ((volatile int *)table)[i];
  return total;
}
