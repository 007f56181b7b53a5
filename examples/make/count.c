#include "count.h"
#include <ctype.h>

size_t count_words(struct table *table, const char *text) {
  size_t words = 0;
  while (*text) {
    size_t length = 0;
    while (isalpha((unsigned char)text[length]))
      length++;
    if (length) {
      table_find(table, text, length)->count++;
      words++;
    }
    text += length ? length : 1;
  }
  return words;
}
