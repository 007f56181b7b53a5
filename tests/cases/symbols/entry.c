// Another entry point, and symbols kept for a debugger by --export-dynamic-symbol.
//# modules: 2
//# link: %objects -Wl,--export-dynamic-symbol=kept -Wl,--undefined=kept
//# not for macho wasm mingw: the options are ELF's
//--- main.c
#include <stdio.h>
int main(void) {
  puts("entered");
  return 0;
}
//--- kept.c
int kept(void) { return 5; }
