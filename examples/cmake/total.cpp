#include "shape.h"

double total(const std::vector<std::unique_ptr<Shape>> &shapes) {
  double sum = 0;
  for (const auto &shape : shapes)
    sum += shape->area();
  return sum;
}
