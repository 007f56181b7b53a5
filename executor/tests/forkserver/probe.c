// Tells what a process can see of itself, or does as it is told. Compiled by the fork server's tests.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

static int by_text(const void *a, const void *b) { return strcmp(*(char **)a, *(char **)b); }

static void report(int argc, char **argv) {
  char text[4096];
  for (int i = 0; i < argc; i++) printf("argument %d %s\n", i, argv[i]);
  printf("called %s %s\n", program_invocation_name, program_invocation_short_name);
  printf("directory %s\n", getcwd(text, sizeof text));
  int count = 0;
  while (environ[count]) count++;
  qsort(environ, count, sizeof *environ, by_text);
  for (int i = 0; i < count; i++) printf("variable %s\n", environ[i]);
  sigset_t mask;
  sigprocmask(SIG_BLOCK, NULL, &mask);
  for (int number = 1; number < 32; number++) {
    struct sigaction action;
    if (sigaction(number, NULL, &action)) continue;
    printf("signal %d blocked %d ignored %d handled %d\n", number, sigismember(&mask, number),
           action.sa_handler == SIG_IGN, action.sa_handler != SIG_IGN && action.sa_handler != SIG_DFL);
  }
  printf("leads its group %d\n", getpgrp() == getpid());
  for (int descriptor = 0; descriptor < 64; descriptor++) {
    char name[64];
    snprintf(name, sizeof name, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(name, text, sizeof text - 1);
    if (length < 0) continue;
    text[length] = 0;
    printf("descriptor %d %.*s\n", descriptor, (int)strcspn(text, ":["), text);
  }
  printf("input %zd\n", read(0, text, 1));
  ssize_t length = readlink("/proc/self/exe", text, sizeof text);
  printf("program %.*s\n", (int)length, text);
  fprintf(stderr, "to standard error\n");
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  if (!strcmp(what, "exit")) return atoi(argv[2]);
  if (!strcmp(what, "signal")) return raise(atoi(argv[2]));
  if (!strcmp(what, "sleep")) {
    // A child of its own, which must end as well.
    pid_t child = fork();
    if (child) printf("%d %d\n", getpid(), child);
    fflush(stdout);
    sleep(600);
    return 0;
  }
  if (!strcmp(what, "wait")) {
    // Marks its run in a file and ends once there are as many marks as wanted.
    FILE *marks = fopen(argv[2], "a+");
    fputc('x', marks);
    fflush(marks);
    long count = ftell(marks);
    printf("run %ld\n", count);
    fflush(stdout);
    if (count < atol(argv[3])) sleep(600);
    return 0;
  }
  if (!strcmp(what, "crash")) {
    // What was executed has its own name on its command line; what was forked has that of the server.
    char line[4096] = "";
    FILE *file = fopen("/proc/self/cmdline", "r");
    fread(line, 1, sizeof line - 1, file);
    if (!strcmp(argv[2], "always") || !strstr(line + strlen(line) + 1, "crash")) raise(SIGSEGV);
    return 0;
  }
  if (!strcmp(what, "count")) {
    size_t total = 0;
    for (int i = 0; i < argc; i++) total += strlen(argv[i]);
    printf("%d %zu\n", argc, total);
    return 0;
  }
  report(argc, argv);
  return 0;
}
