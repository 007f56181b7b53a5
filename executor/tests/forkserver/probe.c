// Tells what a process can see of itself, or does as it is told. Compiled by the fork server's tests.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

extern char **environ;

static int parent_signal(void) {
  int number = 0;
  prctl(PR_GET_PDEATHSIG, &number);
  return number;
}

static int child_subreaper(void) {
  int value = 0;
  prctl(PR_GET_CHILD_SUBREAPER, &value);
  return value;
}

static int alternate_stack(void) {
  stack_t stack;
  return sigaltstack(NULL, &stack) ? -1 : stack.ss_flags;
}

static int by_text(const void *a, const void *b) { return strcmp(*(char **)a, *(char **)b); }

// What the kernel says of a process, without what is a measurement, an address or the number of a process.
static void report_file(const char *name, const char *const *passed_over) {
  FILE *file = fopen(name, "r");
  char line[4096];
  while (file && fgets(line, sizeof line, file)) {
    int skip = 0;
    for (const char *const *prefix = passed_over; *prefix; prefix++) skip |= !strncmp(line, *prefix, strlen(*prefix));
    if (!skip) printf("%s: %s%s", name, line, strchr(line, '\n') ? "" : "\n");
  }
  if (file) fclose(file);
  else printf("%s: %s\n", name, strerror(errno));
}

static void report_bytes(const char *name) {
  FILE *file = fopen(name, "r");
  printf("%s: ", name);
  for (int byte; (byte = fgetc(file)) != EOF;) byte ? putchar(byte) : printf("\\0");
  printf("\n");
  fclose(file);
}

static void report_files(void) {
  const char *const measured[] = {"Pid:", "Tgid:", "Ngid:", "PPid:", "NStgid:", "NSpid:", "NSpgid:", "NSsid:", "Vm", "Rss",
                                  "HugetlbPages", "CoreDumping", "THP_enabled", "voluntary_ctxt", "nonvoluntary_ctxt",
                                  "x86_Thread", "Cpus_allowed_list", "SigQ:", NULL};
  const char *const nothing[] = {NULL};
  report_file("/proc/self/status", measured);
  for (const char *const *name =
           (const char *const[]){"/proc/self/limits", "/proc/self/comm", "/proc/self/cgroup", "/proc/self/oom_score_adj",
                                 "/proc/self/coredump_filter", "/proc/self/loginuid", "/proc/self/sessionid",
                                 "/proc/self/timerslack_ns", "/proc/self/personality", NULL};
       *name; name++)
    report_file(*name, nothing);
  report_bytes("/proc/self/cmdline");
  report_bytes("/proc/self/environ");
  char text[4096];
  for (const char *const *name = (const char *const[]){"/proc/self/cwd", "/proc/self/root", "/proc/self/exe",
                                                       "/proc/self/ns/pid", "/proc/self/ns/mnt", NULL};
       *name; name++) {
    ssize_t length = readlink(*name, text, sizeof text);
    printf("%s: %.*s\n", *name, (int)(length < 0 ? 0 : length), text);
  }
}

static void report_limits(void) {
  for (int resource = 0; resource < RLIM_NLIMITS; resource++) {
    struct rlimit limit;
    if (!getrlimit(resource, &limit)) printf("limit %d %ju %ju\n", resource, limit.rlim_cur, limit.rlim_max);
  }
  mode_t mask = umask(0);
  umask(mask);
  int terminal = open("/dev/tty", O_RDWR);
  printf("umask %o nice %d scheduler %d terminal %d\n", mask, getpriority(PRIO_PROCESS, 0), sched_getscheduler(0),
         terminal >= 0);
  if (terminal >= 0) close(terminal);
  printf("session is the parent's %d\n", getsid(0) == getsid(getppid()));
  printf("dumpable %d dies with its parent %d\n", prctl(PR_GET_DUMPABLE), parent_signal());
  printf("subreaper %d securebits %d no new privileges %d\n", child_subreaper(), prctl(PR_GET_SECUREBITS),
         prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
  struct itimerval timer;
  for (int which = 0; which < 3; which++)
    if (!getitimer(which, &timer)) printf("timer %d %ld\n", which, timer.it_value.tv_sec);
  printf("alarm stack %d\n", alternate_stack());
}

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
  for (int number = 1; number < NSIG; number++) {
    struct sigaction action;
    if (sigaction(number, NULL, &action)) continue;
    printf("signal %d blocked %d ignored %d handled %d\n", number, sigismember(&mask, number),
           action.sa_handler == SIG_IGN, action.sa_handler != SIG_IGN && action.sa_handler != SIG_DFL);
  }
  report_limits();
  report_files();
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
    // The server's library is mapped only in what was forked from it.
    char line[4096];
    int served = 0;
    FILE *file = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, file)) served |= strstr(line, "libdistlto_hook") != NULL;
    if (!strcmp(argv[2], "always") || served) raise(SIGSEGV);
    return 0;
  }
  if (!strcmp(what, "count")) {
    size_t total = 0;
    for (int i = 0; i < argc; i++) total += strlen(argv[i]);
    printf("%d %zu\n", argc, total);
    return 0;
  }
  if (!strcmp(what, "heap")) {
    // Where a block lies that is larger than all that has been given back, from the beginning of its huge page.
    printf("%zu\n", (size_t)malloc(300 << 10) % (2 << 20));
    return 0;
  }
  report(argc, argv);
  return 0;
}
