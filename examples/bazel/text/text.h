#pragma once
#include <string>

namespace text {
std::string upper(const std::string &word);
}
