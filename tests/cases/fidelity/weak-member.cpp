// A native member of an archive with bitcode is loaded after an object that stands behind the archive: the weak
// definition of that object wins.
//# modules: 2
//# flags native.cpp: -fno-lto
//# flags earlier.cpp: -fno-lto
//# step: %ar rcs libmixed.a bitcode.o native.o
//# link: main.o libmixed.a earlier.o
//# not for coff: the format has no such weak definition
//--- main.cpp
#include <cstdio>
int bitcode(), earlier();
int main() { std::printf("%d %d\n", bitcode(), earlier()); }
//--- bitcode.cpp
int bitcode() { return 1; }
//--- native.cpp
__attribute__((weak)) int chosen() { return 30; }
int native() { return chosen(); }
//--- earlier.cpp
int native();
__attribute__((weak)) int chosen() { return 20; }
int earlier() { return native() + chosen(); }
