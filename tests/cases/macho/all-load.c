// Every member of every archive is loaded.
//# for: macho
//# modules: 4
//# step: %ar rcs libx.a part.o helper.o unused.o
//# link: main.o -Wl,-all_load libx.a
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
