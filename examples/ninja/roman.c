#include "roman.h"
#include <string.h>

void roman(int number, char *text) {
  *text = 0;
  for (int n = 0; number > 0; n++) {
    int value;
    const char *letters = digit(n, &value);
    for (; number >= value; number -= value)
      strcat(text, letters);
  }
}
