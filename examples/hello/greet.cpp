#include <cstdio>
void greet(const char *name) { std::printf("hello, %s\n", name); }
