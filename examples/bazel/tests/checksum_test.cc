#include "checksum/checksum.h"

int main() { return checksum("ab", 2) == 4066 ? 0 : 1; }
