// A translation unit without any definition.
//# modules: 2
//--- main.c
#include <stdio.h>
int main(void) {
  puts("with an empty neighbour");
  return 0;
}
//--- empty.c
typedef int nothing;
