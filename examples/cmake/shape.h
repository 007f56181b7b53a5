// Shapes with an area, made by functions of other files.
#pragma once
#include <memory>
#include <vector>

struct Shape {
  virtual double area() const = 0;
  virtual ~Shape() = default;
};

std::unique_ptr<Shape> circle(double radius);
std::unique_ptr<Shape> square(double side);
double total(const std::vector<std::unique_ptr<Shape>> &shapes);
void report(std::size_t count, double area);
