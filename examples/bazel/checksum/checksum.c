#include "checksum/checksum.h"

unsigned mix(unsigned sum, unsigned byte);

unsigned checksum(const char *bytes, size_t count) {
  unsigned sum = 1;
  for (size_t at = 0; at < count; at++) {
    sum = mix(sum, (unsigned char)bytes[at]);
  }
  return sum;
}
