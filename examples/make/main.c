#include "count.h"
#include <stdio.h>
#include <string.h>

static struct table table;

int main(void) {
  size_t words = count_words(&table, "to be or not to be, that is the question");
  printf("%zu words, \"be\" %zu times\n", words, table_find(&table, "be", strlen("be"))->count);
  return 0;
}
