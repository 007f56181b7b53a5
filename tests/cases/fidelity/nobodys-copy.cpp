// A lazy member that nobody needs, on the line before the prevailing copy of an inline function: an object of a module
// whose own copy does not prevail refers to it, and must not have the member loaded for that.
//# modules: 2
//# flags lazy.cpp: -fno-lto
//# step: %ar rcs liblazy.a lazy.o
//# link: -Wl,--start-lib other.o -Wl,--end-lib liblazy.a main.o
//# not for mingw: the options are ELF's
//--- shared.h
#include <cstdio>
inline __attribute__((noinline)) int copied(int x) {
  static int calls = 0;
  return x + ++calls;
}
//--- main.cpp
#include "shared.h"
int other();
int main() {
  std::printf("%d %d\n", copied(10), other());
}
//--- other.cpp
#include "shared.h"
int other() { return copied(100); }
//--- lazy.cpp
#include "shared.h"
int nobody() { return copied(1000); }
__attribute__((constructor)) static void constructed() { std::puts("nobody needs this"); }
