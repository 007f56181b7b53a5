// A library with code that may be anywhere.
//# for: wasm
//# modules: 3
//# flags: -fPIC
//# link: part.o helper.o unused.o -Wl,--experimental-pic,-shared
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
