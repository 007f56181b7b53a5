/* Calls of a DTLTO plugin with arguments that no linker should pass: each must be refused with words, or be harmless.
 *
 *   odd_calls PLUGIN
 */
#define _GNU_SOURCE
#include "dtlto_plugin.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static DtltoPerformCodegenFn perform;
static char *said;
static int told, mistakes;

static void error(const DtltoDiagContext *context, const char *text) {
  (void)context;
  told++;
  free(said);
  said = strdup(text);
}

static void warn(const DtltoDiagContext *context, const char *text) {
  (void)context;
  printf("warning: %s\n", text);
}

static DtltoConfig config;
static DtltoNode node;
static const DtltoNode *nodes[4];
static const char *imports[] = {"a.o", NULL};
static const char *arguments[4];

/* Everything as it should be; then each call spoils one thing. */
static void reset(void) {
  config = (DtltoConfig){"distlto:compiler=/bin/true", NULL, error, warn};
  node = (DtltoNode){"a.o", "a.o", 1, "a.o.thinlto.bc", "a.native.o", 0, NULL, "x86_64-pc-linux-gnu", 1};
  nodes[0] = nodes[1] = &node;
  arguments[0] = "-O2";
  free(said);
  said = strdup("");
  told = 0;
}

static void expect(int line, int result, int wanted, const char *words) {
  int failed = wanted != 0;
  if ((result != 0) != failed || (words && !strstr(said, words)) || (words && told != 1)) {
    printf("line %d: result %d, %d errors: %s\n", line, result, told, said);
    mistakes++;
  }
  reset();
}

#define EXPECT(wanted, words, ...) expect(__LINE__, perform(__VA_ARGS__), wanted, words)
#define REFUSED(words) EXPECT(1, words, &config, 1, nodes, 1, arguments)

int main(int count, char **words) {
  if (count != 2)
    return 2;
  void *plugin = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
  if (!plugin)
    return puts(dlerror()), 2;
  *(void **)&perform = dlsym(plugin, "dtltoPerformCodegen");
  if (!perform)
    return puts(dlerror()), 2;
  reset();

  EXPECT(1, NULL, NULL, 1, nodes, 1, arguments);
  EXPECT(1, NULL, (const DtltoConfig *)((char *)&config + 1), 1, nodes, 1, arguments);
  EXPECT(0, NULL, &config, 0, NULL, 0, NULL);
  EXPECT(0, NULL, &config, 0, nodes, 1, arguments);
  EXPECT(1, "nodes as a null pointer", &config, 1, NULL, 0, NULL);
  EXPECT(1, "argv as a null pointer", &config, 1, nodes, 1, NULL);
  EXPECT(1, "nodes of 18446744073709551615 entries", &config, SIZE_MAX, nodes, 0, NULL);
  EXPECT(1, "argv of 4611686018427387904 entries", &config, 1, nodes, (size_t)1 << 62, arguments);
  EXPECT(1, "nodes at a misaligned address", &config, 1, (const DtltoNode *const *)((char *)nodes + 1), 0, NULL);

  config.DbsName = NULL, REFUSED("DbsName as a null pointer");
  config.DbsName = "distlto:\xff", REFUSED("which is not UTF-8");
  config.DbsName = "distlto:jobs=many", REFUSED("not a number");
  config.EmitError = NULL, EXPECT(1, NULL, &config, 1, NULL, 0, NULL);
  config.EmitError = NULL, config.EmitWarn = NULL, EXPECT(0, NULL, &config, 0, NULL, 0, NULL);
  arguments[0] = NULL, REFUSED("argv[0] as a null pointer");
  arguments[0] = "\xfe", REFUSED("argv[0]");
  nodes[0] = NULL, REFUSED("nodes[0] as a null pointer");
  nodes[0] = (const DtltoNode *)((char *)&node + 1), REFUSED("nodes[0] at a misaligned address");

  node.ModuleId = NULL, REFUSED("ModuleId of nodes[0] as a null pointer");
  node.ModuleId = "", REFUSED("ModuleId of nodes[0] that is empty");
  node.ModuleId = "b\xff.o", REFUSED("ModuleId of nodes[0] \"b");
  node.ModuleId = "-b.o", REFUSED("for an option");
  node.ModulePath = NULL, REFUSED("ModulePath of nodes[0] (a.o) as a null pointer");
  node.ModulePath = "/no/such/file", REFUSED("/no/such/file");
  node.SummaryIndexPath = NULL, REFUSED("SummaryIndexPath of nodes[0] (a.o)");
  node.NativeObjectPath = "", REFUSED("NativeObjectPath of nodes[0] (a.o) that is empty");
  node.NativeObjectPath = "a.o", REFUSED("is an output of jobs[0]");
  node.TargetTriple = NULL, REFUSED("TargetTriple of nodes[0] (a.o)");
  node.ImportsListSize = 1, REFUSED("ImportsList of nodes[0] (a.o) as a null pointer");
  node.ImportsListSize = SIZE_MAX, node.ImportsList = imports, REFUSED("ImportsList of nodes[0] (a.o) of");
  node.ImportsListSize = 2, node.ImportsList = imports, REFUSED("import 1 in ImportsList of nodes[0] (a.o)");
  /* One node twice writes one object twice. */
  EXPECT(1, "a.native.o", &config, 2, nodes, 0, NULL);
  /* Without the module there is nothing to compile. */
  REFUSED("\"a.o\", for module \"a.o\"");

  struct sigaction ignore = {.sa_handler = SIG_IGN}, usual = {.sa_handler = SIG_DFL};
  sigaction(SIGCHLD, &ignore, NULL);
  REFUSED("ignores SIGCHLD");
  usual.sa_flags = SA_NOCLDWAIT;
  sigaction(SIGCHLD, &usual, NULL);
  REFUSED("ignores SIGCHLD");
  usual.sa_flags = 0;
  sigaction(SIGCHLD, &usual, NULL);

  /* Without descriptors nothing can be started, which is an error like any other. */
  struct rlimit few, many;
  getrlimit(RLIMIT_NOFILE, &many);
  for (few = many, few.rlim_cur = 4; few.rlim_cur < 12; few.rlim_cur++) {
    setrlimit(RLIMIT_NOFILE, &few);
    EXPECT(1, NULL, &config, 1, nodes, 1, arguments);
  }
  setrlimit(RLIMIT_NOFILE, &many);

  /* In a directory that is gone nothing relative has a path. */
  char directory[] = "gone-XXXXXX";
  if (!mkdtemp(directory) || chdir(directory) != 0 || rmdir(strcat(strcpy((char[32]){0}, "../"), directory)) != 0)
    return 2;
  REFUSED("the current directory");
  if (mistakes == 0)
    puts("all as expected");
  return mistakes != 0;
}
