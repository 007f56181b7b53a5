// Native members and lazy objects that only optimised-away code refers to are loaded all the same: their constructors
// run, and a weak reference to them is not null.
//# modules: 2
//# flags member.cpp: -fno-lto
//# flags lazy.cpp: -fno-lto
//# step: %ar rcs libmember.a member.o
//# link: main.o flag.o libmember.a -Wl,--start-lib lazy.o -Wl,--end-lib
//# not for mingw: the options are ELF's
//--- main.cpp
#include <cstdio>
int flag(), member(int), lazy(int);
extern "C" __attribute__((weak)) int beside(int);
static int never(int x) { return flag() ? member(x) + lazy(x) : x; }
int main() {
  std::printf("%d %d\n", never(7), beside ? beside(1) : -1);
}
//--- flag.cpp
int flag() { return 0; }
//--- member.cpp
#include <cstdio>
int member(int x) { return x; }
extern "C" int beside(int x) { return x + 1; }
__attribute__((constructor)) static void constructed() { std::puts("member"); }
//--- lazy.cpp
#include <cstdio>
int lazy(int x) { return x; }
__attribute__((constructor)) static void constructed() { std::puts("lazy"); }
