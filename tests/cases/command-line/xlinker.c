// Linker options in every spelling a driver knows.
//# modules: 2
//# link: %objects -Xlinker --gc-sections -Wl,-z,now,-z,relro -Wl,--build-id -Wl,-O1
//# not for macho coff mingw: the options are ELF's
//--- main.c
#include <stdio.h>
int part(int);
int main(void) {
  printf("%d\n", part(6));
  return 0;
}
//--- part.c
int part(int x) { return x * 7; }
