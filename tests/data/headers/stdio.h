// Declarations that the cases need, for targets without a C library here.
#pragma once
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif
typedef struct file FILE;
extern FILE *stdout;
int printf(const char *, ...);
int puts(const char *);
int putchar(int);
int fflush(FILE *);
#ifdef __cplusplus
}
#endif
