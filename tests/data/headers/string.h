// Declarations that the cases need, for targets without a C library here.
#pragma once
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif
size_t strlen(const char *);
int strcmp(const char *, const char *);
void *memcpy(void *, const void *, size_t);
void *memset(void *, int, size_t);
#ifdef __cplusplus
}
#endif
