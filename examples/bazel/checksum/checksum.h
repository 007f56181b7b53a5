#pragma once
#include <stddef.h>

#ifdef __cplusplus
extern "C"
#endif
unsigned checksum(const char *bytes, size_t count);
