// Says what an expression in reverse Polish notation comes to.
#include <cstdio>

#include "machine.h"
#include "tokens.h"
#include "words.h"

int main() {
  Machine machine;
  for (const std::string& token : tokens("2 3 + 4 *"))
    machine.token(token);
  std::printf("%ld, %s\n", machine.top(), word_for(machine.top()));
  return 0;
}
