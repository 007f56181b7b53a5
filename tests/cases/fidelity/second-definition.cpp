// The member that nobody needs defines something else a second time: the link is valid.
//# modules: 2
//# flags lazy.cpp: -fno-lto
//# flags native.cpp: -fno-lto
//# step: %ar rcs liblazy.a lazy.o
//# link: -Wl,--start-lib other.o -Wl,--end-lib liblazy.a main.o native.o
//# not for mingw: the options are ELF's
//--- shared.h
#include <cstdio>
inline __attribute__((noinline)) int copied(int x) {
  static int calls = 0;
  return x + ++calls;
}
//--- main.cpp
#include "shared.h"
int other(), native();
int twice() { return 2; }
int main() { std::printf("%d %d %d\n", copied(10), other(), native()); }
//--- other.cpp
#include "shared.h"
int other() { return copied(100); }
//--- lazy.cpp
#include "shared.h"
int twice() { return copied(1000); }
//--- native.cpp
int twice();
int native() { return twice(); }
