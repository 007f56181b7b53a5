#include "text/text.h"

std::string longest(const std::vector<std::string> &words) {
  std::string found;
  for (const std::string &word : words)
    if (word.size() > found.size())
      found = word;
  return found;
}
