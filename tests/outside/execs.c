// Starts a program by the function that the first argument names.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static char **line;

static void started(int signal) { execv(line[0], line); }

static int spawned(int (*spawn)(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                                char *const[], char *const[])) {
  pid_t child;
  int status = 0;
  errno = 77;
  int error = spawn(&child, line[0], NULL, NULL, line, environ);
  if (error == 0)
    waitpid(child, &status, 0);
  printf("%d %d\n", error, status);
  return 0;
}

int main(int count, char **words) {
  const char *by = words[1];
  line = words + 2;
  char *none[] = {NULL};
  char *some[] = {"A=b", "PATH=/nowhere", NULL};
  if (!strcmp(by, "execv"))
    execv(line[0], line);
  if (!strcmp(by, "execvp"))
    execvp(line[0], line);
  if (!strcmp(by, "execve"))
    execve(line[0], line, environ);
  if (!strcmp(by, "execve-none"))
    execve(line[0], line, none);
  if (!strcmp(by, "execve-null"))
    execve(line[0], line, NULL);
  if (!strcmp(by, "execve-some"))
    execve(line[0], line, some);
  if (!strcmp(by, "execvpe"))
    execvpe(line[0], line, environ);
  if (!strcmp(by, "execl"))
    execl(line[0], line[0], line[1], NULL);
  if (!strcmp(by, "execlp"))
    execlp(line[0], line[0], line[1], NULL);
  if (!strcmp(by, "execle"))
    execle(line[0], line[0], line[1], NULL, environ);
  if (!strcmp(by, "fexecve"))
    fexecve(open(line[0], O_RDONLY), line, environ);
  if (!strcmp(by, "system-call"))
    syscall(SYS_execve, line[0], line, environ);
  if (!strcmp(by, "posix_spawn"))
    return spawned(posix_spawn);
  if (!strcmp(by, "posix_spawnp"))
    return spawned(posix_spawnp);
  if (!strcmp(by, "system"))
    return system(line[0]);
  if (!strcmp(by, "popen")) {
    char text[100];
    FILE *pipe = popen(line[0], "r");
    while (fgets(text, sizeof text, pipe))
      fputs(text, stdout);
    return pclose(pipe);
  }
  if (!strcmp(by, "vfork")) {
    for (int i = 0; i < 100; i++) {
      pid_t child = vfork();
      if (child == 0) {
        execve(line[0], line, environ);
        _exit(errno);
      }
      int status;
      waitpid(child, &status, 0);
      printf("%d\n", status);
    }
    return 0;
  }
  if (!strcmp(by, "handler")) {
    signal(SIGUSR1, started);
    raise(SIGUSR1);
  }
  printf("%s\n", strerror(errno));
  return 9;
}
