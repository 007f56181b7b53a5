#include "calendar.h"

const char *weekday_name(int year, int month, int day) {
  static const char *const names[] = {"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"};
  return names[weekday(year, month, day)];
}
