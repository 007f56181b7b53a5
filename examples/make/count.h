// Counts the words of a text in a hash table.
#ifndef COUNT_H
#define COUNT_H

#include <stddef.h>

struct entry {
  char word[32];
  size_t count;
};

struct table {
  struct entry entries[1024];
};

struct entry *table_find(struct table *table, const char *word, size_t length);
size_t count_words(struct table *table, const char *text);

#endif
