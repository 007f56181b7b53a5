// Fails if it lacks an argument, a variable, a file, or the library that only its constructor links.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include "pkg/registry.h"

int main(int argc, char **argv) {
  if (const char *shards = getenv("TEST_SHARD_STATUS_FILE")) fclose(fopen(shards, "w"));
  const char *words = getenv("WORDS"), *inherited = getenv("INHERITED");
  if (argc != 3 || !words || strcmp(words, argv[2])) return puts("arguments"), 1;
  if (!inherited) return puts("inherited"), 1;
  if (!fopen(words, "r")) return puts("data"), 1;
  if (count() != 1) return puts("constructor"), 1;
  return 0;
}
