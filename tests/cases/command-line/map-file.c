// Files the linker writes beside the program.
//# modules: 2
//# link: %objects -Wl,-Map=%dir/program.map
//# after: test -s %dir/program.map
//# not for macho: the option is ELF's
//--- main.c
#include <stdio.h>
int part(int);
int main(void) {
  printf("%d\n", part(6));
  return 0;
}
//--- part.c
int part(int x) { return x * 7; }
