// Static variables and functions that importing promotes to hidden globals.
//# modules: 3
//--- main.c
#include <stdio.h>
int count(int), total(void);
int main(void) {
  for (int i = 0; i < 5; i++)
    count(i);
  printf("%d\n", total());
  return 0;
}
//--- count.c
static int counter;
static int __attribute__((noinline)) add(int n) { return counter += n; }
int count(int n) { return add(n); }
int total(void) { return counter; }
//--- unused.c
int unused(int n) { return n; }
