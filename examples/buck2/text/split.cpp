#include "text/text.h"

std::vector<std::string> split(const std::string &text) {
  std::vector<std::string> words;
  std::string word;
  for (char c : text) {
    if (is_letter(c)) {
      word += lower(c);
    } else if (!word.empty()) {
      words.push_back(word);
      word.clear();
    }
  }
  if (!word.empty())
    words.push_back(word);
  return words;
}
