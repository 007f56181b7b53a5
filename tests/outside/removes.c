// Starts a program that is called ld, and removes an older file afterwards.
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

int main(int count, char **words) {
  char *line[] = {"./ld", "-o", "other", NULL};
  pid_t child;
  int error = posix_spawn(&child, line[0], NULL, NULL, line, environ);
  if (error == 0)
    waitpid(child, NULL, 0);
  int removed = remove(words[1]);
  printf("%d %d %d\n", error, removed, access(words[1], F_OK));
}
