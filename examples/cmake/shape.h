// Shapes with an area, made by functions of other files.
#pragma once
#include <memory>

struct Shape {
  virtual double area() const = 0;
  virtual ~Shape() = default;
};

std::unique_ptr<Shape> circle(double radius);
std::unique_ptr<Shape> square(double side);
