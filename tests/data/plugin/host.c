/* A linker's part of the DTLTO plugin interface, for tests: does a real thin link, hands its backend compilations to a
 * plugin, checks that the plugin has changed nothing of this process, and links the native objects.
 *
 *   host PLUGIN NAME TRIPLE ROUNDS serial|threads REMOVE OUTDIR... -- OPTION... -- LINKER WORD...
 *
 * LINKER WORD... is a whole command of ld.lld. Every OUTDIR gets a thin link of its own and ROUNDS calls, in one thread
 * after the other or in all at once, and its program is OUTDIR/program. The file REMOVE, unless it is "-", is removed
 * after the thin link. Exit code 0 when all calls gave 0, 10 when one did not, 1 when something else is wrong.
 */
#define _GNU_SOURCE
#include "dtlto_plugin.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition, ...) ((condition) ? (void)0 : die(__VA_ARGS__))

static void die(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("host: ", stdout);
  vprintf(format, arguments);
  puts("");
  fflush(stdout);
  _exit(1);
}

static char *text(const char *format, ...) {
  va_list arguments;
  char *made = NULL;
  va_start(arguments, format);
  CHECK(vasprintf(&made, format, arguments) >= 0, "no memory");
  va_end(arguments);
  return made;
}

/* A list of words that grows. */
struct list {
  char **words;
  size_t count;
};

static void add(struct list *list, char *word) {
  list->words = realloc(list->words, (list->count + 2) * sizeof(char *));
  CHECK(list->words, "no memory");
  list->words[list->count++] = word;
  list->words[list->count] = NULL;
}

static struct list lines(const char *path) {
  struct list found = {0};
  char *line = NULL;
  size_t room = 0;
  ssize_t length;
  FILE *file = fopen(path, "r");
  CHECK(file, "cannot read %s", path);
  while ((length = getline(&line, &room, file)) > 0) {
    if (line[length - 1] == '\n')
      line[length - 1] = 0;
    add(&found, strdup(line));
  }
  free(line);
  fclose(file);
  return found;
}

static void run(char **words) {
  int status;
  pid_t child = fork();
  CHECK(child >= 0, "cannot fork");
  if (child == 0) {
    execv(words[0], words);
    _exit(127);
  }
  while (waitpid(child, &status, 0) < 0)
    CHECK(errno == EINTR, "cannot wait for %s", words[0]);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s ended with status %d", words[0], status);
}

/* One output directory: its nodes, and what its calls gave. */
struct link {
  const char *directory;
  DtltoNode *nodes;
  const DtltoNode **pointers;
  size_t count;
  pthread_t caller;
  int result;
};

static DtltoPerformCodegenFn perform;
static const char *plugin_name, *triple;
static struct list options, linker;
static int rounds;

/* The member that an identifier `ARCHIVE(NAME at OFFSET)` names, copied to a file; NULL when it is no such identifier. */
static char *member(const char *id, const char *directory, size_t number) {
  const char *open = strrchr(id, '('), *at = open ? strstr(open, " at ") : NULL;
  if (!at || id[strlen(id) - 1] != ')')
    return NULL;
  char *archive = text("%.*s", (int)(open - id), id);
  FILE *file = fopen(archive, "rb");
  CHECK(file, "cannot read %s", archive);
  char header[61] = {0};
  CHECK(fseek(file, atol(at + 4), SEEK_SET) == 0 && fread(header, 1, 60, file) == 60 && header[58] == '`',
        "no member header in %s", id);
  size_t size = strtoul(header + 48, NULL, 10);
  char *bytes = malloc(size), *path = text("%s/members/%zu.bitcode", directory, number);
  CHECK(bytes && fread(bytes, 1, size, file) == size, "%s ends early", id);
  fclose(file);
  FILE *out = fopen(path, "wb");
  CHECK(out && fwrite(bytes, 1, size, out) == size && fclose(out) == 0, "cannot write %s", path);
  free(bytes);
  free(archive);
  return path;
}

static int larger_first(const void *left, const void *right) {
  size_t a = ((const DtltoNode *)left)->ModuleSize, b = ((const DtltoNode *)right)->ModuleSize;
  return (a < b) - (a > b);
}

static void thin_link(struct link *link, const char *directory) {
  struct list words = {0};
  for (size_t i = 0; i < linker.count; i++)
    add(&words, linker.words[i]);
  char *index = text("%s/index", directory);
  add(&words, text("--thinlto-index-only=%s", index));
  add(&words, "--thinlto-emit-imports-files");
  add(&words, text("--thinlto-prefix-replace=;%s/", directory));
  mkdir(directory, 0777);
  mkdir(text("%s/members", directory), 0777);
  run(words.words);
  struct list modules = lines(index);
  link->directory = directory;
  link->count = modules.count;
  link->nodes = calloc(modules.count, sizeof(DtltoNode));
  link->pointers = calloc(modules.count, sizeof(DtltoNode *));
  for (size_t i = 0; i < modules.count; i++) {
    DtltoNode *node = &link->nodes[i];
    struct stat found;
    /* The list holds the names that the shards got. */
    node->ModuleId = modules.words[i] + strlen(directory) + 1;
    char *path = member(node->ModuleId, directory, i);
    node->ModulePath = path ? path : node->ModuleId;
    CHECK(stat(node->ModulePath, &found) == 0, "no module %s", node->ModulePath);
    node->ModuleSize = (size_t)found.st_size;
    node->SummaryIndexPath = text("%s/%s.thinlto.bc", directory, node->ModuleId);
    node->NativeObjectPath = text("%s/%zu.native.o", directory, i);
    struct list imports = lines(text("%s/%s.imports", directory, node->ModuleId));
    node->ImportsListSize = imports.count;
    node->ImportsList = (const char **)imports.words;
    node->TargetTriple = triple;
    node->TaskNumber = i + 1;
  }
  qsort(link->nodes, link->count, sizeof(DtltoNode), larger_first);
  for (size_t i = 0; i < link->count; i++)
    link->pointers[i] = &link->nodes[i];
}

/* What a plugin must leave alone, as text. */
static char *state(void) {
  char *found = getcwd(NULL, 0), *more;
  sigset_t mask;
  for (int number = 1; number < 65; number++) {
    struct sigaction action;
    if (sigaction(number, NULL, &action) != 0)
      continue;
    more = text("%s\nsignal %d: %p %x %d", found, number, (void *)action.sa_sigaction, (unsigned)action.sa_flags,
                sigismember(&action.sa_mask, SIGUSR2));
    free(found);
    found = more;
  }
  pthread_sigmask(SIG_SETMASK, NULL, &mask);
  mode_t creation = umask(077);
  umask(creation);
  more = text("%s\nmask %d %d, umask %o, stdin at %ld", found, sigismember(&mask, SIGUSR1), sigismember(&mask, SIGINT),
              (unsigned)creation, (long)lseek(0, 0, SEEK_CUR));
  free(found);
  found = more;
  for (char **variable = environ; *variable; variable++) {
    more = text("%s\n%s", found, *variable);
    free(found);
    found = more;
  }
  for (int number = 0; number < 1024; number++) {
    char target[4096];
    char *descriptor = text("/proc/self/fd/%d", number);
    ssize_t length = readlink(descriptor, target, sizeof target);
    free(descriptor);
    if (length < 0)
      continue;
    more = text("%s\ndescriptor %d: %.*s", found, number, (int)length, target);
    free(found);
    found = more;
  }
  return found;
}

static int threads(void) {
  int count = 0;
  DIR *tasks = opendir("/proc/self/task");
  for (struct dirent *task; (task = readdir(tasks));)
    count += task->d_name[0] != '.';
  closedir(tasks);
  return count;
}

static void unchanged(const char *before, int threads_before) {
  char *after = state();
  size_t same = 0;
  while (before[same] && before[same] == after[same])
    same++;
  while (same > 0 && before[same - 1] != '\n')
    same--;
  CHECK(strcmp(before, after) == 0, "the plugin has changed this process from\n%.300s\nto\n%.300s", before + same,
        after + same);
  free(after);
  CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD, "the plugin has left a child");
  /* A thread that was waited for may still be listed for a moment. */
  for (int moment = 0; threads() != threads_before; moment++) {
    CHECK(moment < 1000, "%d threads before, %d after", threads_before, threads());
    usleep(1000);
  }
}

/* Texts of several callbacks are not mixed, and each tells its call. */
static pthread_mutex_t talking = PTHREAD_MUTEX_INITIALIZER;

static void tell(const char *kind, const DtltoDiagContext *context, const char *said) {
  const struct link *link = (const void *)context;
  CHECK(pthread_equal(link->caller, pthread_self()), "a callback on another thread");
  pthread_mutex_lock(&talking);
  printf("%s of %s: %s\n", kind, link->directory, said);
  fflush(stdout);
  pthread_mutex_unlock(&talking);
}

static void error(const DtltoDiagContext *context, const char *said) { tell("error", context, said); }
static void warn(const DtltoDiagContext *context, const char *said) { tell("warning", context, said); }

static void *call(void *argument) {
  struct link *link = argument;
  DtltoConfig config = {plugin_name, argument, error, warn};
  link->caller = pthread_self();
  for (int round = 0; round < rounds && link->result == 0; round++) {
    for (size_t i = 0; i < link->count; i++)
      unlink(link->nodes[i].NativeObjectPath);
    link->result = perform(&config, link->count, link->pointers, options.count, (const char **)options.words);
  }
  return NULL;
}

/* The linker's own command with the native objects in their modules' places. */
static void final_link(struct link *link) {
  struct list words = {0};
  for (size_t i = 0; i < linker.count; i++) {
    char *word = linker.words[i];
    int replaced = 0;
    if (i > 0 && strcmp(linker.words[i - 1], "-o") == 0) {
      add(&words, text("%s/program", link->directory));
      continue;
    }
    for (size_t n = 0; n < link->count; n++) {
      const char *id = link->nodes[n].ModuleId, *open = strrchr(id, '(');
      int is_member = open && (size_t)(open - id) == strlen(word) && strncmp(id, word, strlen(word)) == 0;
      if (is_member || strcmp(id, word) == 0)
        add(&words, (char *)link->nodes[n].NativeObjectPath);
      replaced |= strcmp(id, word) == 0;
    }
    /* An archive stays, behind its members' objects, for its native members. */
    if (!replaced)
      add(&words, word);
  }
  run(words.words);
}

static void nothing(int number) { (void)number; }

int main(int count, char **words) {
  CHECK(count > 8, "usage: host PLUGIN NAME TRIPLE ROUNDS serial|threads REMOVE OUTDIR... -- OPTION... -- LINKER...");
  struct link links[8] = {0};
  size_t wanted = 0;
  plugin_name = words[2], triple = words[3], rounds = atoi(words[4]);
  int at = 7, parallel = strcmp(words[5], "threads") == 0, failed = 0;
  for (; at < count && strcmp(words[at], "--") != 0; at++)
    links[wanted++].directory = words[at];
  for (at++; at < count && strcmp(words[at], "--") != 0; at++)
    add(&options, words[at]);
  for (at++; at < count; at++)
    add(&linker, words[at]);

  /* Things that a careless plugin would change. */
  int numbers[] = {SIGINT, SIGTERM, SIGCHLD, SIGPIPE, SIGHUP};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    struct sigaction action = {.sa_handler = nothing};
    sigaddset(&action.sa_mask, SIGUSR2);
    sigaction(numbers[i], &action, NULL);
  }
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &mask, NULL);
  umask(027);
  int input = open("/proc/self/exe", O_RDONLY);
  CHECK(dup2(input, 0) == 0 && lseek(0, 17, SEEK_SET) == 17, "no standard input");

  for (size_t i = 0; i < wanted; i++)
    thin_link(&links[i], links[i].directory);
  printf("modules %zu\n", links[0].count);
  fflush(stdout);
  if (strcmp(words[6], "-") != 0)
    CHECK(unlink(words[6]) == 0, "cannot remove %s", words[6]);

  void *plugin = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
  CHECK(plugin, "%s", dlerror());
  *(void **)&perform = dlsym(plugin, "dtltoPerformCodegen");
  CHECK(perform, "%s", dlerror());
  char *before = state();
  int threads_before = threads();
  pthread_t callers[8];
  for (size_t i = 0; i < wanted; i++) {
    CHECK(pthread_create(&callers[i], NULL, call, &links[i]) == 0, "no thread");
    if (!parallel)
      pthread_join(callers[i], NULL);
  }
  for (size_t i = 0; parallel && i < wanted; i++)
    pthread_join(callers[i], NULL);
  unchanged(before, threads_before);
  dlclose(plugin);
  unchanged(before, threads_before);

  for (size_t i = 0; i < wanted; i++) {
    printf("result of %s: %d\n", links[i].directory, links[i].result);
    failed |= links[i].result != 0;
    for (size_t n = 0; n < links[i].count && links[i].result == 0; n++)
      printf("object\t%s\t%s\t%s\t%s\t%s\n", links[i].directory, links[i].nodes[n].ModuleId,
             links[i].nodes[n].ModulePath, links[i].nodes[n].SummaryIndexPath, links[i].nodes[n].NativeObjectPath);
    fflush(stdout);
    if (links[i].result == 0)
      final_link(&links[i]);
  }
  return failed ? 10 : 0;
}
