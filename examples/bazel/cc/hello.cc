#include <cstdio>

#include "cc/greeting.h"

int main() { std::puts(greeting()); }
