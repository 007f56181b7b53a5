#include "pkg/registry.h"
int main() { return count() == 1 ? 0 : 1; }
