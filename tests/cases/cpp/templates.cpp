// Templates and inline functions instantiated in two files and merged.
//# modules: 2
//--- main.cpp
#include "shared.h"
#include <cstdio>
int other(int);
int main() {
  std::printf("%d %d %d\n", power<3>(2), other(3), next());
}
//--- other.cpp
#include "shared.h"
int other(int x) { return power<3>(x) + next(); }
//--- shared.h
template <int N> int power(int x) { return x * power<N - 1>(x); }
template <> inline int power<0>(int) { return 1; }
inline int next() {
  static int state = 0;
  return ++state;
}
