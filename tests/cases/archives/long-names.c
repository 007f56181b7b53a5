// Names longer than an archive header's field, with a space and without an extension.
//# modules: 3
//# step: cp one.o "a member with a long name and spaces"
//# step: %ar rcs libx.a "a member with a long name and spaces" two.o
//# link: main.o libx.a
//--- main.c
#include <stdio.h>
int one(void), two(void);
int main(void) {
  printf("%d %d\n", one(), two());
  return 0;
}
//--- one.c
int one(void) { return 1; }
//--- two.c
int two(void) { return 2; }
