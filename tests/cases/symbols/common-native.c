// A common symbol of which a native definition prevails: LLVM goes by the first one in bitcode.
//# flags: -fPIE -fcommon
//# flags second.c: -fPIC
//# link: -pie %objects
//# modules: 3
//# not for macho wasm coff mingw: its assembly or an option is ELF's
//--- main.c
#include <stdio.h>
extern int counter[];
int first(void);
int second(void);
int main(void) {
  counter[0] += 1;
  printf("%d %d %d\n", counter[0], first(), second());
}
//--- first.c
int counter[1];
int first(void) { return counter[0]; }
//--- second.c
int counter[1];
int second(void) { return counter[0]; }
//--- native.s
	.comm counter,8,4
	.section .note.GNU-stack,"",@progbits
