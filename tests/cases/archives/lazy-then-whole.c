// An archive is named again under --whole-archive, after a symbol has loaded a member of it: each is loaded twice.
//# step: %ar rcs libx.a a.o
//# link: main.o libx.a -Wl,--whole-archive libx.a -Wl,--no-whole-archive
//# fails: duplicate symbol: a
//# not for coff mingw: the linker takes what others refuse
//--- main.c
int a(int);
int main(void) { return a(1); }
//--- a.c
int a(int x) { return x; }
