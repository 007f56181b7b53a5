// A COMDAT whose copies differ by file: the first on the command line wins, even where native code holds another copy.
//# modules: 2
//# flags native.cpp: -fno-lto
//--- main.cpp
#include <cstdio>
template <int> __attribute__((noinline)) int value() { return 1; }
int other(), native();
int main() { std::printf("%d %d %d\n", value<0>(), other(), native()); }
//--- other.cpp
template <int> __attribute__((noinline)) int value() { return 1; }
int other() { return value<0>(); }
//--- native.cpp
template <int> __attribute__((noinline)) int value() { return 1; }
int native() { return value<0>(); }
