// Two thin archives hold one object, and both are loaded; lld's DTLTO takes the object for one module.
//# flags: -ffunction-sections
//# step: %ar rcs --thin liblazy.a twice.o
//# step: %ar rcs --thin libwhole.a twice.o
//# link: main.o liblazy.a -Wl,-z,muldefs -Wl,--whole-archive libwhole.a -Wl,--no-whole-archive
//# without dtlto: it ends with "Expected at most one ThinLTO module per bitcode file"
//# modules: 3
//# not for macho coff mingw: the options are ELF's
//--- main.c
#include <stdio.h>
int twice(int);
int main(void) {
  printf("%d\n", twice(21));
  return 0;
}
//--- twice.c
#include <stdio.h>
__attribute__((constructor)) static void begin(void) { puts("begin"); }
int twice(int x) { return 2 * x; }
