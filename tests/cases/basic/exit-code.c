// The program's own exit code, through static functions of one name in two files.
//# modules: 3
//# exit: 7
//--- main.c
#include <stdio.h>
int three(void), four(void);
int main(void) {
  puts("three and four");
  return three() + four();
}
//--- three.c
static int value(void) { return 3; }
int three(void) { return value(); }
//--- four.c
static int value(void) { return 4; }
int four(void) { return value(); }
