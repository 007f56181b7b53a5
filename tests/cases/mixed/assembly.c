// An assembly file that calls into bitcode and is called from it.
//# modules: 2
//# not for macho wasm coff mingw: its assembly is ELF's
//--- main.c
#include <stdio.h>
int assembled(int);
int main(void) {
  printf("%d\n", assembled(4));
  return 0;
}
//--- called.c
int called(int x) { return x * x; }
//--- assembled.s
	.text
	.globl assembled
	.type assembled, @function
assembled:
	subq $8, %rsp
	call called@PLT
	addq $8, %rsp
	incl %eax
	ret
	.size assembled, .-assembled
	.section .note.GNU-stack,"",@progbits
