// Calls one function of what it is linked with.
#include <stdio.h>

int CALLED(int);

int main(void) {
  printf("%d\n", CALLED(1));
  return 0;
}
