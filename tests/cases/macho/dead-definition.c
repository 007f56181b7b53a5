// A native definition replaces the others. The first of these decides whether an imported reference needs the GOT.
//# for: macho
//# modules: 4
//# flags: -fcommon
//# flags native.c: -fno-lto
//# link: main.o hidden.o native.o user.o weak.o
//--- main.c
int hidden(int), weak(int), native(int);
int main(void) { return hidden(3) + weak(3) + native(3); }
//--- hidden.c
__attribute__((visibility("hidden"))) int shared[6];
int hidden(int x) { return x + 1; }
//--- native.c
__attribute__((weak)) int shared[1] = {425};
int native(int x) { return shared[0] + x; }
//--- user.c
extern int shared[];
int user(int x) { shared[0] += x; return shared[0]; }
//--- weak.c
__attribute__((weak)) int shared[5];
int user(int);
__attribute__((noinline)) int weak(int x) { return user(x) * 3; }
