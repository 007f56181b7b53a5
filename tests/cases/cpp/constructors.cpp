// Static constructors run in the order of the command line, and priorities come first; destructors in reverse.
//# modules: 4
//--- main.cpp
#include "trace.h"
int main() { std::puts("main"); }
//--- first.cpp
#include "trace.h"
static Trace first("first");
//--- early.cpp
#include "trace.h"
__attribute__((init_priority(200))) static Trace early("early");
//--- last.cpp
#include "trace.h"
static Trace last("last");
//--- trace.h
#include <cstdio>
struct Trace {
  const char *name;
  explicit Trace(const char *n) : name(n) { std::printf("+%s\n", name); }
  ~Trace() { std::printf("-%s\n", name); }
};
