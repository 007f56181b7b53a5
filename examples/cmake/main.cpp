#include "shape.h"
#include <iostream>
#include <vector>

int main() {
  std::vector<std::unique_ptr<Shape>> shapes;
  shapes.push_back(circle(2));
  shapes.push_back(square(3));
  double total = 0;
  for (const auto &shape : shapes)
    total += shape->area();
  std::cout << shapes.size() << " shapes, area " << total << '\n';
}
