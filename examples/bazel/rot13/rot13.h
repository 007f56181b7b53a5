#pragma once
#include <string>

std::string rotated(const std::string &word);
