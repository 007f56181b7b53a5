// Threads with the smallest stack start programs.
#define _GNU_SOURCE
#include <limits.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void *start(void *data) {
  char *line[] = {"/bin/true", NULL};
  pid_t child = fork();
  if (child == 0) {
    execve(line[0], line, environ);
    _exit(1);
  }
  int status;
  waitpid(child, &status, 0);
  *(int *)data += status;
  if (posix_spawnp(&child, "true", NULL, NULL, line, environ) != 0)
    *(int *)data += 1;
  else
    waitpid(child, &status, 0);
  return NULL;
}

int main(void) {
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN);
  int failed = 0;
  for (int i = 0; i < 20; i++) {
    pthread_t thread;
    pthread_create(&thread, &small, start, &failed);
    pthread_join(thread, NULL);
  }
  printf("%d\n", failed);
}
