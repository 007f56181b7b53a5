// Says what each kind of library makes of a word.
#include <cstdio>
#include <fstream>
#include <string>

#include "checksum/checksum.h"
#include "plugin/plugin.h"
#include "prebuilt/words.h"
#include "rot13/rot13.h"
#include "text/text.h"

int main() {
  std::ifstream file("app/words.txt");
  std::string word;
  while (file >> word) {
    std::printf("%s: upper %s, rot13 %s, checksum %u, plugin %d, length %d, vowels %d\n", word.c_str(),
                text::upper(word).c_str(), rotated(word).c_str(), checksum(word.data(), word.size()),
                plugin_score(static_cast<int>(word.size())), prebuilt_length(word.c_str()),
                generated_vowels(word.c_str()));
  }
  return 0;
}
