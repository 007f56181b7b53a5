// The same where the copy that prevails is that of a native object which is loaded after the archive was passed.
//# modules: 2
//# flags lazy.cpp: -fno-lto
//# flags prevails.cpp: -fno-lto
//# step: %ar rcs liblazy.a lazy.o
//# link: main.o -Wl,--start-lib other.o -Wl,--end-lib liblazy.a prevails.o
//# not for mingw: the options are ELF's
//--- main.cpp
#include <cstdio>
__attribute__((weak)) int chosen(int x) { return x; }
int other(int), prevails(int);
int main() { std::printf("%d %d %d\n", chosen(1), other(2), prevails(3)); }
//--- other.cpp
__attribute__((weak)) int chosen(int x) { return x + 10; }
int other(int x) { return chosen(x); }
//--- prevails.cpp
int chosen(int x) { return x + 20; }
int prevails(int x) { return chosen(x); }
//--- lazy.cpp
#include <cstdio>
__attribute__((weak)) int chosen(int x) { return x + 30; }
__attribute__((constructor)) static void constructed() { std::puts("nobody needs this"); }
