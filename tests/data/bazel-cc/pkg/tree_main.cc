#include <cstdio>
int two(int);
int main() { std::printf("%d\n", two(1)); }
