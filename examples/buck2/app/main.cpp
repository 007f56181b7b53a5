#include <cstdio>
#include <string>

#include "app/report.h"
#include "checksum/checksum.h"
#include "text/text.h"

int main(int argc, char **argv) {
  std::string text = argc > 1 ? argv[1] : "The quick brown fox jumps over the lazy dog";
  auto words = split(text);
  std::string word = longest(words);
  std::printf("%zu words, longest %s: %s, adler %u\n", words.size(), word.c_str(),
              report(word, text).c_str(), adler(text));
  return 0;
}
