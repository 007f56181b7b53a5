// A stack of numbers.
#pragma once
#include <string>
#include <vector>

class Machine {
 public:
  // Does what a token says: a number is put on the stack, "+" and "*" take two numbers and put one.
  void token(const std::string& text);
  long top() const;

 private:
  std::vector<long> stack_;
};
