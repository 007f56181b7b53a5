#include <cstdio>
#include "pkg/registry.h"
int main() {
  add();
  std::printf("%d\n", count());
}
