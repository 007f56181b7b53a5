#include "shape.h"
#include <iostream>

void report(std::size_t count, double area) { std::cout << count << " shapes, area " << area << '\n'; }
