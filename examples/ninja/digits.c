#include "roman.h"

const char *digit(int n, int *value) {
  static const char *const digits[] = {"M", "CM", "D", "CD", "C", "XC", "L", "XL", "X", "IX", "V", "IV", "I"};
  static const int values[] = {1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1};
  *value = values[n];
  return digits[n];
}
