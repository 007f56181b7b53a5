// Thread-local variables with constructors, used from another file and another thread.
//# modules: 2
//# link: %objects -pthread
//# not for macho wasm coff mingw: needs a C++ library
//--- main.cpp
#include <cstdio>
#include <thread>
int bump();
extern thread_local int plain;
int main() {
  bump();
  plain = 5;
  int there = 0, other = 0;
  std::thread([&] { there = bump(), other = plain; }).join();
  std::printf("%d %d %d %d\n", bump(), there, plain, other);
}
//--- state.cpp
struct State {
  int value;
  State() : value(40) {}
};
thread_local int plain = 1;
thread_local State state;
int bump() { return ++state.value; }
