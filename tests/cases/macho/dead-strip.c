// Functions that nothing uses, and equal ones, are dropped.
//# for: macho
//# modules: 4
//# link: %objects -Wl,-dead_strip,--icf=safe
//--- main.c
int part(int);
int main(void) { return part(3); }
//--- part.c
int helper(int);
int part(int x) { return helper(x) * 7; }
//--- helper.c
int helper(int x) { return x + 1; }
//--- unused.c
int unused(int x) { return x - 1; }
