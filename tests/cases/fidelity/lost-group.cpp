// A module holds a COMDAT group first, and another file's strong definition wins the symbol: the module's object has no
// such group, and that of a later native object stays out, with its constructor.
//# modules: 1
//# flags strong.cpp: -fno-lto
//# flags late.cpp: -fno-lto
//# link: main.o strong.o late.o
//# not for coff mingw: the format has no such weak definition
//--- main.cpp
#include <cstdio>
int told(const char *text);
inline int value = told("ctor of main");
int late();
int main() { std::printf("%d %d\n", value, late()); }
//--- strong.cpp
#include <cstdio>
extern int value;
int value = 5;
int told(const char *text) { std::puts(text); return 6; }
//--- late.cpp
int told(const char *text);
inline int value = told("ctor of late");
int late() { return value; }
