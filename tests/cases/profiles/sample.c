// A sample profile, named at compilation and at the link.
//# modules: 3
//# flags: -gline-tables-only -fprofile-sample-use=samples.txt
//# without dtlto: clang's own option also has it infer counts, which lld in process does not
//# link: %objects -fprofile-sample-use=samples.txt
//# not for coff mingw: lld has DTLTO's compiler infer counts, or no such option
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
//--- samples.txt
main:10100:1
 3: 1000
 4: 990 hot:980
hot:9800:980
 0: 980
cold:50:10
 0: 10
