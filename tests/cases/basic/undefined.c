// An undefined symbol: the linker's own message and no program.
//# fails: undefined symbol: missing
//# not for macho wasm: undefined symbols are allowed there
//--- main.c
int missing(void);
int main(void) { return missing(); }
