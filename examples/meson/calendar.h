/* Days of the Gregorian calendar. */
#pragma once

int is_leap(int year);
/* The days before a month (1 to 12) of a year. */
int days_before(int year, int month);
/* The day of the week of a date: 0 is Monday. */
int weekday(int year, int month, int day);
/* What that day is called. */
const char *weekday_name(int year, int month, int day);
