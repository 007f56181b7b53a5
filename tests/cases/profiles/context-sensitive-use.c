// Context-sensitive counts, used by the backends.
//# llvm: >=16
//# modules: 3
//# before: %clang -O2 -fprofile-generate main.c hot.c cold.c -o trained
//# before: env LLVM_PROFILE_FILE=first.profraw ./trained
//# before: %profdata merge first.profraw -o first.profdata
//# before: %clang -O2 -flto=thin -fuse-ld=lld -fprofile-use=first.profdata -fcs-profile-generate main.c hot.c cold.c -o trained
//# before: env LLVM_PROFILE_FILE=second.profraw ./trained
//# before: %profdata merge first.profdata second.profraw -o both.profdata
//# flags: -fprofile-use=both.profdata
//# link: %objects -fprofile-use=both.profdata
//# remote: -fprofile-use=both.profdata
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
