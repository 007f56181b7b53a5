#include "calendar.h"
#include <string.h>

int main(void) {
  return strcmp(weekday_name(2000, 2, 29), "Tuesday") != 0 || strcmp(weekday_name(1970, 1, 1), "Thursday") != 0 ||
         days_before(1900, 3) != 59 || !is_leap(2024);
}
