#include "text/text.h"

int main() { return text::upper("a-b") == "A-B" ? 0 : 1; }
