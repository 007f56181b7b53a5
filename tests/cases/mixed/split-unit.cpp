// Split units: whole-program devirtualisation with type metadata in a regular LTO part, which has copies of functions
// whose result is a constant.
//# modules: 3
//# flags: -fwhole-program-vtables -fsplit-lto-unit -fvisibility=hidden
//# link: %objects -fwhole-program-vtables -fvisibility=hidden
//# not for coff: needs a C++ library
//--- main.cpp
#include "shape.h"
#include <cstdio>
Shape *make(int);
int main() {
  for (int i = 0; i < 3; i++) {
    Shape *shape = make(i);
    std::printf("%d %d\n", area(shape), shape->corners());
  }
}
//--- make.cpp
#include "shape.h"
struct Square : Shape {
  int side;
  explicit Square(int s) : side(s) {}
  int area() const override { return side * side; }
  int corners() const override { return 4; }
};
Shape *make(int n) { return new Square(n); }
//--- area.cpp
#include "shape.h"
int area(const Shape *shape) { return shape->area() + 1; }
//--- shape.h
struct Shape {
  virtual int area() const = 0;
  virtual int corners() const = 0;
  virtual ~Shape() = default;
};
int area(const Shape *);
