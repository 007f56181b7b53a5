// Hidden and protected symbols, and a program that exports its own.
//# modules: 2
//# link: %objects -rdynamic -ldl
//# not for macho wasm coff mingw: needs a C library
//--- main.c
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
int hidden(void);
int main(void) {
  int (*seen)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "seen");
  printf("%d %d %d\n", hidden(), seen ? seen() : -1, dlsym(RTLD_DEFAULT, "hidden") != NULL);
  return 0;
}
//--- defined.c
__attribute__((visibility("hidden"))) int hidden(void) { return 1; }
__attribute__((visibility("protected"))) int seen(void) { return 2; }
