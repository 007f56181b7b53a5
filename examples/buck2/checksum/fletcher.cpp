#include "checksum/checksum.h"

unsigned fletcher(const std::string &text) {
  unsigned a = 0, b = 0;
  for (unsigned char c : text) {
    a = (a + c) % 255;
    b = (b + a) % 255;
  }
  return b << 8 | a;
}
