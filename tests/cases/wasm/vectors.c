// Code for vectors of 128 bits.
//# for: wasm
//# modules: 2
//# flags: -msimd128
//--- main.c
#include <stdio.h>
void scale(int *to, const int *from, int count), shift(int *to, const int *from), count_up(int *to);
int main(void) {
  int from[8] = {1, 2, 3, 4, 5, 6, 7, 8}, to[8] = {0};
  int numbers[8];
  scale(to, from, 8);
  shift(to, from);
  count_up(numbers);
  printf("%d %d %d %d\n", to[0], to[3], to[7], numbers[7]);
  return 0;
}
//--- work.c
void scale(int *to, const int *from, int count) {
  for (int i = 0; i < count; i++)
    to[i] += 2 * from[i];
}
void shift(int *to, const int *from) {
  to[0] += from[0] + 1;
  to[1] += from[1] + 1;
  to[2] += from[2] + 1;
  to[3] += from[3] + 1;
}
void count_up(int *to) {
  for (int i = 0; i < 8; i++)
    to[i] = i;
}
