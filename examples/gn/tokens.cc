#include "tokens.h"

#include <sstream>

std::vector<std::string> tokens(const std::string& line) {
  std::istringstream words(line);
  std::vector<std::string> found;
  for (std::string word; words >> word;)
    found.push_back(word);
  return found;
}
