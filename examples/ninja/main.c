#include "roman.h"
#include <stdio.h>

int main(void) {
  char text[16];
  roman(1994, text);
  puts(text);
  return 0;
}
