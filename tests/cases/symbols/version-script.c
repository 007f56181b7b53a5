// A version script decides what a shared library exports; the rest is internalised by LTO.
//# modules: 2
//# flags: -fPIC
//# flags user.c: -fno-lto
//# link: -shared public.o private.o -Wl,--version-script=exports.map
//# after: %clang -fuse-ld=lld user.o %out -Wl,-rpath,%work -o %dir/user
//# run: %dir/user
//--- public.c
int private_one(int);
int public_one(int x) { return private_one(x) + 1; }
//--- private.c
int private_one(int x) { return x * 3; }
//--- user.c
#include <stdio.h>
int public_one(int);
int main(void) {
  printf("%d\n", public_one(5));
  return 0;
}
//--- exports.map
LIBRARY_1 {
  global: public_one;
  local: *;
};
