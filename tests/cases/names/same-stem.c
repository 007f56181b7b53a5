// Objects of one name in several directories.
//# modules: 4
//--- main.c
#include <stdio.h>
int one(void), two(void), three(void);
int main(void) {
  printf("%d %d %d\n", one(), two(), three());
  return 0;
}
//--- a/part.c
int one(void) { return 1; }
//--- b/part.c
int two(void) { return 2; }
//--- a/b/part.c
int three(void) { return 3; }
