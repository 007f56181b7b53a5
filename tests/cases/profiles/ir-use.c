// Counts of the optimiser, used, with the profile named at the link too.
//# llvm: >=16
//# modules: 3
//# before: %clang -O2 -fprofile-generate main.c hot.c cold.c -o trained
//# before: env LLVM_PROFILE_FILE=counts.profraw ./trained
//# before: %profdata merge counts.profraw -o counts.profdata
//# flags: -fprofile-use=counts.profdata
//# link: %objects -fprofile-use=counts.profdata
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
