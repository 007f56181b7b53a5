// Calls into everything, so that a thin link imports from everything.
#include <stdio.h>

#include "lib/lib.h"

int first(int), second(int), object(int), branch(int), leafy(int), rusty(int);

int main(void) {
  printf("%d %d %d\n", wide(1), middle(1), leaf(1));
  printf("%d %d %d\n", first(1), second(1), object(1));
  printf("%d %d %d\n", branch(1), leafy(1), rusty(1));
  return 0;
}
