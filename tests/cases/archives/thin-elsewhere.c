// A thin archive in another directory; members are found relative to the archive, not to the working directory.
//# modules: 4
//# step: mkdir -p deep/lib deep/objects
//# step: mv a.o b.o helper.o unused.o deep/objects
//# step: %ar rcsT deep/lib/libx.a deep/objects/a.o deep/objects/b.o deep/objects/helper.o deep/objects/unused.o
//# link: main.o deep/lib/libx.a
//--- main.c
#include <stdio.h>
int a(int), b(int);
int main(void) {
  printf("%d %d\n", a(1), b(2));
  return 0;
}
//--- a.c
int helper(int);
int a(int x) { return helper(x) + 1; }
//--- b.c
int helper(int);
int b(int x) { return helper(x) + 2; }
//--- helper.c
int helper(int x) { return 10 * x; }
//--- unused.c
int unused(int x) { return 3 * x; }
