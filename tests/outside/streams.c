// Changes the standard streams of the C library, as glibc allows.
#include <stdio.h>
#include <string.h>

int main(int count, char **words) {
  if (!strcmp(words[1], "none")) {
    stdout = NULL;
    stderr = NULL;
  }
  if (!strcmp(words[1], "another"))
    stdout = stderr;
  if (!strcmp(words[1], "closed")) {
    fclose(stdout);
    stdout = fopen("/dev/null", "w");
    fputs("nothing", stdout);
    fclose(stdout);
  }
  return 3;
}
