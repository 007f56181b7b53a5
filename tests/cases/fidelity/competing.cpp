// A native object defines what a module, loaded before it, defines too: the module's definition wins, though native
// objects come first otherwise.
//# modules: 2
//# flags native.cpp: -fno-lto
//# flags apart.cpp: -fno-lto
//--- main.cpp
#include <cstdio>
inline __attribute__((noinline)) int copied() { return 1; }
__attribute__((weak)) int chosen() { return 10; }
int native(), other(), apart();
int main() { std::printf("%d %d %d %d\n", copied() + chosen(), native(), other(), apart()); }
//--- native.cpp
inline __attribute__((noinline)) int copied() { return 2; }
__attribute__((weak)) int chosen() { return 20; }
int native() { return copied() + chosen(); }
//--- apart.cpp
int apart() { return 4; }
//--- other.cpp
inline __attribute__((noinline)) int copied() { return 3; }
__attribute__((weak)) int chosen() { return 30; }
int other() { return copied() + chosen(); }
