#pragma once

#include <string>
#include <vector>

// The words of a text, in lower case.
std::vector<std::string> split(const std::string &text);

// The longest word.
std::string longest(const std::vector<std::string> &words);

char lower(char c);
bool is_letter(char c);
