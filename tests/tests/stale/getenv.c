/* Writes down what the program asks its environment for, in the file that ASKED_LOG names. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

typedef char *(*ask)(const char *);

static char *answer(const char *function, const char *name) {
  ask original = (ask)dlsym(RTLD_NEXT, function);
  const char *file = original("ASKED_LOG");
  char line[256];
  size_t length = strlen(name);
  if (file && length < sizeof line) {
    int log = open(file, O_WRONLY | O_APPEND | O_CREAT, 0666);
    memcpy(line, name, length);
    line[length] = '\n';
    if (write(log, line, length + 1) < 0) { /* nobody to tell */ }
    close(log);
  }
  return original(name);
}

char *getenv(const char *name) { return answer("getenv", name); }
char *secure_getenv(const char *name) { return answer("secure_getenv", name); }
