/* The interface between a linker and a DTLTO plugin: what the linker hands over, and the one function of a plugin.
 *
 * A linker that is given `--thinlto-distribute=NAME[:DETAIL]` does the thin link, loads `../lib/libDTLTONAME.so`
 * relative to its own program, and calls dtltoPerformCodegen() once with all backend compilations. distlto's
 * plugin is libDTLTOdistlto.so; docs/design/dtlto-plugin.md says what it understands in DETAIL.
 *
 * All strings end in a NUL byte and stay the linker's; a plugin keeps none of them after it has returned.
 * Relative paths start in the process's current directory.
 */
#ifndef DISTLTO_DTLTO_PLUGIN_H
#define DISTLTO_DTLTO_PLUGIN_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The linker's own business: a plugin hands it back to the two callbacks and never looks inside. */
typedef struct DtltoDiagContext DtltoDiagContext;

/* What concerns the whole call. */
typedef struct DtltoConfig {
  /* The whole NAME[:DETAIL]. */
  const char *DbsName;
  /* The first argument of both callbacks; may be NULL. */
  const DtltoDiagContext *DiagContext;
  /* Called on the thread that called the plugin, with text of one or more lines. Must not throw. */
  void (*EmitError)(const DtltoDiagContext *, const char *);
  void (*EmitWarn)(const DtltoDiagContext *, const char *);
} DtltoConfig;

/* One backend compilation. */
typedef struct DtltoNode {
  /* The name of the module in index shards; usually, but not always, a path. */
  const char *ModuleId;
  /* The bitcode file with the module's content. */
  const char *ModulePath;
  /* That file's size in bytes. */
  size_t ModuleSize;
  /* The module's index shard, which the thin link has written. */
  const char *SummaryIndexPath;
  /* Where the native object is wanted. */
  const char *NativeObjectPath;
  /* The identifiers of the modules that this one imports from. */
  size_t ImportsListSize;
  const char **ImportsList;
  /* What to compile for, such as "x86_64-unknown-linux-gnu". */
  const char *TargetTriple;
  /* The linker's number for the compilation. */
  size_t TaskNumber;
} DtltoNode;

/* Compiles every node; returns when all objects are there (0) or the reasons why not have been told (not 0).
 *
 * nodes: nodes_num pointers, the largest module first.
 * argv: argc options of code generation as clang spells them, without a compiler: "-O2", "-fpic", ...
 */
int dtltoPerformCodegen(const DtltoConfig *cfg, size_t nodes_num, const DtltoNode *const *nodes, size_t argc,
                        const char **argv);

/* The type of that function, for dlsym(). */
typedef int (*DtltoPerformCodegenFn)(const DtltoConfig *, size_t, const DtltoNode *const *, size_t, const char **);

#ifdef __cplusplus
}
#endif

#endif
