#include "cc/greeting.h"

int main() { return greeting()[0] == 'h' ? 0 : 1; }
