// Members whose names differ by case alone.
//# modules: 3
//# step: mkdir -p upper
//# step: mv Part-upper.o upper/Part.o
//# step: %ar rcs libx.a part.o upper/Part.o
//# link: main.o libx.a
//--- main.c
#include <stdio.h>
int one(void), two(void);
int main(void) {
  printf("%d %d\n", one(), two());
  return 0;
}
//--- part.c
int one(void) { return 1; }
//--- Part-upper.c
int two(void) { return 2; }
