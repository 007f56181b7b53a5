// A library of the user's that replaces a function too.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int execve(const char *path, char *const words[], char *const environment[]) {
  fprintf(stderr, "execve %s\n", path);
  int (*real)(const char *, char *const[], char *const[]) = dlsym(RTLD_NEXT, "execve");
  return real(path, words, environment);
}
