#include <cstdio>

#include "machine.h"
#include "tokens.h"

static int check(const char* line, long expected) {
  Machine machine;
  for (const std::string& token : tokens(line))
    machine.token(token);
  if (machine.top() == expected)
    return 0;
  std::printf("%s: %ld, expected %ld\n", line, machine.top(), expected);
  return 1;
}

int main() {
  return check("7", 7) + check("1 2 +", 3) + check("2 3 + 4 *", 20);
}
