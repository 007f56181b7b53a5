#include "kernel.h"

int string_length(const char *text) {
  int length = 0;
  while (text[length])
    length++;
  return length;
}
