#include "shape.h"

int main() {
  std::vector<std::unique_ptr<Shape>> shapes;
  shapes.push_back(circle(2));
  shapes.push_back(square(3));
  report(shapes.size(), total(shapes));
}
