// --wrap diverts calls that cross files.
//# modules: 3
//# link: %objects -Wl,--wrap=work
//# not for macho coff: the option is ELF's
//--- main.c
#include <stdio.h>
int work(int);
int main(void) {
  printf("%d\n", work(1));
  return 0;
}
//--- work.c
int work(int x) { return x + 1; }
//--- wrapper.c
int __real_work(int);
int __wrap_work(int x) { return 100 * __real_work(x); }
