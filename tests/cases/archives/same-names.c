// Members of one name within one archive, and again in another.
//# modules: 4
//# step: %ar rcs libx.a one/part.o
//# step: %ar qs libx.a two/part.o
//# step: %ar rcs liby.a three/part.o
//# link: main.o libx.a liby.a
//--- main.c
#include <stdio.h>
int one(void), two(void), three(void);
int main(void) {
  printf("%d %d %d\n", one(), two(), three());
  return 0;
}
//--- one/part.c
int one(void) { return 1; }
//--- two/part.c
int two(void) { return 2; }
//--- three/part.c
int three(void) { return 3; }
