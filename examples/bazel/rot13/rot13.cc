#include "rot13/rot13.h"

extern "C" unsigned char rot13_letter(unsigned char letter);

std::string rotated(const std::string &word) {
  std::string result;
  for (char letter : word) {
    result += static_cast<char>(rot13_letter(static_cast<unsigned char>(letter)));
  }
  return result;
}
