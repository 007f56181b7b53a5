#include "calendar.h"
#include <stdio.h>

int main(void) {
  printf("2000-02-29 was a %s, day %d of its year\n", weekday_name(2000, 2, 29), days_before(2000, 2) + 29);
  return 0;
}
