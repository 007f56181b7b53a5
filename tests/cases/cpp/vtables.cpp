// Virtual calls, RTTI and a key function in another file.
//# modules: 3
//# not for macho wasm coff: needs a C++ library
//--- main.cpp
#include "shape.h"
#include <cstdio>
#include <typeinfo>
int main() {
  Shape *shapes[] = {make_square(3), make_circle(2)};
  for (Shape *shape : shapes)
    std::printf("%s %d %d\n", typeid(*shape).name(), shape->area(), dynamic_cast<Square *>(shape) != nullptr);
}
//--- square.cpp
#include "shape.h"
int Square::area() const { return side * side; }
Shape *make_square(int side) { return new Square(side); }
//--- circle.cpp
#include "shape.h"
namespace {
struct Circle : Shape {
  int radius;
  explicit Circle(int r) : radius(r) {}
  int area() const override { return 3 * radius * radius; }
};
} // namespace
Shape *make_circle(int radius) { return new Circle(radius); }
//--- shape.h
struct Shape {
  virtual int area() const = 0;
  virtual ~Shape() = default;
};
struct Square : Shape {
  int side;
  explicit Square(int s) : side(s) {}
  int area() const override;
};
Shape *make_square(int);
Shape *make_circle(int);
