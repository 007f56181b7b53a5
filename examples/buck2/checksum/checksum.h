#pragma once

#include <string>

unsigned adler(const std::string &text);
unsigned fletcher(const std::string &text);
unsigned unused(const std::string &text);
