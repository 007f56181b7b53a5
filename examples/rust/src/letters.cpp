// Says whether a byte is part of a word; called from Rust for each byte.
#include <cstdint>

extern "C" bool is_letter(std::uint8_t byte) { return (byte | 0x20) >= 'a' && (byte | 0x20) <= 'z'; }
