// A library, of which some symbols are exported.
//# for: macho
//# modules: 3
//# link: -dynamiclib part.o helper.o unused.o -Wl,-exported_symbol,_part,-install_name,@rpath/libx.dylib
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
