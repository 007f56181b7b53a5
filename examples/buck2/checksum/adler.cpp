#include "checksum/checksum.h"

unsigned adler(const std::string &text) {
  unsigned a = 1, b = 0;
  for (unsigned char c : text) {
    a = (a + c) % 65521;
    b = (b + a) % 65521;
  }
  return b << 16 | a;
}
