// Declarations that the cases need, for targets without a C library here.
#pragma once
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif
int atoi(const char *);
void *malloc(size_t);
void free(void *);
char *getenv(const char *);
void exit(int);
#ifdef __cplusplus
}
#endif
