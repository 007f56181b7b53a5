// Inline assembly that names a symbol of another file.
//# modules: 2
//# not for macho wasm: its assembly is x86-64's
//--- main.c
#include <stdio.h>
int called(void);
int main(void) {
  int result;
  __asm__ volatile("call called" : "=a"(result) : : "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
  printf("%d\n", result);
  return 0;
}
//--- called.c
__attribute__((used)) int called(void) { return 12; }
