// A file lists the inputs.
//# for: macho
//# modules: 3
//# link: -filelist inputs
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
//--- inputs
main.o
part.o
helper.o
