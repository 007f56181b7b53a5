// One translation unit.
//# modules: 1
//--- main.c
#include <stdio.h>
int main(void) {
  puts("alone");
  return 0;
}
