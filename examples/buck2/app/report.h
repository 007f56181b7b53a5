#pragma once

#include <string>

// The word in disguise, and the text's checksum.
std::string report(const std::string &word, const std::string &text);
