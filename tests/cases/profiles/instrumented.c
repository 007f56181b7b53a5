// Instrumentation: the program counts and still behaves.
//# llvm: >=16
//# modules: 3
//# flags: -fprofile-instr-generate
//# link: %objects -fprofile-instr-generate
//# run: env LLVM_PROFILE_FILE=%dir/counts.profraw %out
//# run: %profdata show --counts --all-functions %dir/counts.profraw
//--- main.c
#include <stdio.h>
int hot(int), cold(int);
int main(void) {
  int total = 0;
  for (int i = 0; i < 1000; i++)
    total += i % 100 ? hot(i) : cold(i);
  printf("%d\n", total);
  return 0;
}
//--- hot.c
int hot(int x) { return x % 7 ? x * 3 : x - 1; }
//--- cold.c
int cold(int x) {
  int total = 0;
  for (int i = 0; i < x % 10; i++)
    total += i * x;
  return total;
}
