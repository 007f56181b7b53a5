#include "calendar.h"

int days_before(int year, int month) {
  static const int days[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
  return days[month - 1] + (month > 2 && is_leap(year));
}

int weekday(int year, int month, int day) {
  int past = year - 1;
  return (past * 365 + past / 4 - past / 100 + past / 400 + days_before(year, month) + day - 1) % 7;
}
