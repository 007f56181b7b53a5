// The same with native objects, and members of one name.
//# modules: 1
//# flags a.cpp: -fno-lto
//# flags b.cpp: -fno-lto
//# flags c.cpp: -fno-lto
//# flags d.cpp: -fno-lto
//# step: mkdir -p 1 2
//# step: cp a.o 1/same.o
//# step: cp c.o 2/same.o
//# step: %ar qcs libsame.a 1/same.o 2/same.o
//# link: main.o -Wl,--start-lib d.o -Wl,--end-lib libsame.a -Wl,--start-lib b.o -Wl,--end-lib
//# not for coff mingw: a weak definition or an option is ELF's
//--- main.cpp
#include <cstdio>
int b();
int main() { std::printf("%d\n", b()); }
//--- a.cpp
#include <cstdio>
int c();
__attribute__((weak)) int chosen() { return 1; }
int a() { return chosen() * 1000 + c(); }
__attribute__((constructor)) static void constructed() { std::puts("a"); }
//--- b.cpp
#include <cstdio>
int a(), d();
__attribute__((weak)) int chosen() { return 2; }
int b() { return a() * 10 + chosen() + d(); }
__attribute__((constructor)) static void constructed() { std::puts("b"); }
//--- c.cpp
#include <cstdio>
__attribute__((weak)) int chosen() { return 3; }
int c() { return 5; }
__attribute__((constructor)) static void constructed() { std::puts("c"); }
//--- d.cpp
#include <cstdio>
int d() { return 7; }
__attribute__((constructor)) static void constructed() { std::puts("d"); }
