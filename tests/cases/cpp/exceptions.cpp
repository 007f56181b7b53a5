// Exceptions thrown, passed on and caught in three files, with cleanups between.
//# modules: 3
//# not for macho wasm coff: needs a C++ library
//--- main.cpp
#include <cstdio>
#include <stdexcept>
void middle(int);
int main() {
  for (int i = 0; i < 3; i++) {
    try {
      middle(i);
      std::puts("fine");
    } catch (const std::out_of_range &error) {
      std::printf("caught %s\n", error.what());
    }
  }
}
//--- middle.cpp
#include <cstdio>
#include <string>
void thrower(int, const std::string &);
struct Cleanup {
  ~Cleanup() { std::puts("cleanup"); }
};
void middle(int n) {
  Cleanup cleanup;
  thrower(n, "value " + std::to_string(n));
}
//--- thrower.cpp
#include <stdexcept>
#include <string>
void thrower(int n, const std::string &text) {
  if (n > 0)
    throw std::out_of_range(text);
}
