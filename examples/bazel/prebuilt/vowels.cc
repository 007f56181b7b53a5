#include "letters.h"

extern "C" int generated_vowels(const char *word) {
  int count = 0;
  for (; *word; word++) {
    count += is_vowel(*word);
  }
  return count;
}
