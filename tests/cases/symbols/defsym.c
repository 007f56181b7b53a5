// --defsym makes one symbol another's name.
//# modules: 2
//# link: %objects -Wl,--defsym=replaced=replacement
//# not for macho wasm coff mingw: the option is ELF's
//--- main.c
#include <stdio.h>
int replaced(int);
int main(void) {
  printf("%d\n", replaced(1));
  return 0;
}
//--- replacement.c
int replacement(int x) { return x + 41; }
