// Symbols that only sections, attributes or the linker refer to survive: used, retain, start/stop, constructors.
//# modules: 3
//# link: %objects -Wl,--gc-sections
//# not for macho coff mingw: its sections have other names
//--- main.c
#include <stdio.h>
extern const int __start_registry[], __stop_registry[];
int main(void) {
  int total = 0;
  for (const int *entry = __start_registry; entry != __stop_registry; entry++)
    total += *entry;
  printf("%d\n", total);
  return 0;
}
//--- one.c
__attribute__((section("registry"), used, retain)) const int one = 1;
__attribute__((constructor)) static void early(void) { __builtin_printf("early\n"); }
//--- two.c
__attribute__((section("registry"), used, retain)) const int two = 2;
