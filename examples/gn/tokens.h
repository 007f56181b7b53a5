#pragma once
#include <string>
#include <vector>

// The words of a line.
std::vector<std::string> tokens(const std::string& line);
