// An undefined symbol: the linker's own message and no program.
//# fails: undefined symbol: missing
//--- main.c
int missing(void);
int main(void) { return missing(); }
