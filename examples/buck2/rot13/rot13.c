#include "rot13/rot13.h"

char rot13(char c) {
  return c >= 'a' && c <= 'z' ? (char)((c - 'a' + 13) % 26 + 'a') : c;
}
