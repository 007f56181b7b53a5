#include "app/report.h"

#include "checksum/checksum.h"
#include "rot13/rot13.h"

std::string report(const std::string &word, const std::string &text) {
  std::string line;
  for (char c : word)
    line += rot13(c);
  return line + ", fletcher " + std::to_string(fletcher(text));
}
