// Options of the linker's own ThinLTO, which have no meaning for backends that run elsewhere.
//# modules: 2
//# link: %objects -Wl,--thinlto-jobs=2 -flto-jobs=2
//--- main.c
#include <stdio.h>
int part(int);
int main(void) {
  printf("%d\n", part(6));
  return 0;
}
//--- part.c
int part(int x) { return x * 7; }
