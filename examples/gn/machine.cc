#include "machine.h"

void Machine::token(const std::string& text) {
  if (text != "+" && text != "*") {
    stack_.push_back(std::stol(text));
    return;
  }
  long right = stack_.at(stack_.size() - 1);
  long left = stack_.at(stack_.size() - 2);
  stack_.resize(stack_.size() - 2);
  stack_.push_back(text == "+" ? left + right : left * right);
}

long Machine::top() const {
  return stack_.back();
}
