// Files are loaded in another order than they stand on the line: b before a. Its weak definition wins.
//# modules: 3
//# link: main.o -Wl,--start-lib a.o -Wl,--end-lib -Wl,--start-lib b.o -Wl,--end-lib
//# not for mingw: the options are ELF's
//--- main.cpp
#include <cstdio>
int b();
int main() { std::printf("%d\n", b()); }
//--- a.cpp
#include <cstdio>
__attribute__((weak)) int chosen() { return 1; }
int a() { return chosen(); }
__attribute__((constructor)) static void constructed() { std::puts("a"); }
//--- b.cpp
#include <cstdio>
int a();
__attribute__((weak)) int chosen() { return 2; }
int b() { return a() * 10 + chosen(); }
__attribute__((constructor)) static void constructed() { std::puts("b"); }
