#include <stdio.h>

#include "kernel.h"

int main(void) {
  printf("work %d, time %d, length %d, entry %d\n", async_run(20), time_now(), string_length("kernel"), entry(40));
  return 0;
}
