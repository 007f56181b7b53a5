#include "text/text.h"

std::string text::upper(const std::string &word) {
  std::string result;
  for (char letter : word) {
    result += letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter;
  }
  return result;
}
