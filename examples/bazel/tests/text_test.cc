#include "text/text.h"

int main() { return text::upper("thin") == "THIN" ? 0 : 1; }
