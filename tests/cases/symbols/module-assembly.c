// Assembly at the top of a file that defines and uses symbols.
//# modules: 3
//# not for macho wasm coff mingw: its assembly is ELF's
//--- main.c
#include <stdio.h>
int from_assembly(void), caller(void);
int main(void) {
  printf("%d %d\n", from_assembly(), caller());
  return 0;
}
//--- assembly.c
__asm__(".text\n.globl from_assembly\n.type from_assembly,@function\nfrom_assembly:\n  movl $77, %eax\n  ret\n"
        ".size from_assembly, .-from_assembly\n");
int beside(void) { return 1; }
//--- caller.c
int from_assembly(void), beside(void);
int caller(void) { return from_assembly() + beside(); }
