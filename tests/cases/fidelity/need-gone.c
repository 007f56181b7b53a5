// A module needs what nothing defines, in code that is dropped; the native object that is left could do without it.
//# fails: undefined symbol: absent
//# flags native.c: -fno-lto
//# not for macho wasm coff mingw: undefined symbols are allowed there
//--- main.c
void absent(void);
int asked(void), found(void);
int main(void) {
  if (asked())
    absent();
  return found();
}
//--- asked.c
int asked(void) { return 0; }
//--- native.c
__attribute__((weak)) void absent(void);
int found(void) { return absent != 0; }
