// Memory that threads share.
//# for: wasm
//# modules: 3
//# flags: -matomics -mbulk-memory
//# link: main.o part.o helper.o -Wl,--shared-memory,--max-memory=1048576,--import-memory
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
