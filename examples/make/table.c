#include "count.h"
#include <string.h>

static size_t hash(const char *word, size_t length) {
  size_t value = 5381;
  for (size_t i = 0; i < length; i++)
    value = value * 33 + (unsigned char)word[i];
  return value;
}

struct entry *table_find(struct table *table, const char *word, size_t length) {
  if (length > 31)
    length = 31;
  for (size_t at = hash(word, length);; at++) {
    struct entry *entry = &table->entries[at % 1024];
    if (!entry->count)
      memcpy(entry->word, word, length);
    if (!strncmp(entry->word, word, length) && !entry->word[length])
      return entry;
  }
}
