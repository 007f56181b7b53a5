// Keeps patterns in a database, and tells how many are there afterwards.

#include <cstdio>
#include <cstring>

#include "leveldb/c.h"

extern "C" {
int keep_patterns(leveldb_t* database);

int keep(leveldb_t* database, const char* name, size_t name_length, const char* text, size_t length) {
  leveldb_writeoptions_t* options = leveldb_writeoptions_create();
  char* error = nullptr;
  leveldb_put(database, options, name, name_length, text, length, &error);
  leveldb_writeoptions_destroy(options);
  if (error != nullptr) {
    std::fprintf(stderr, "%s\n", error);
    leveldb_free(error);
    return 1;
  }
  return 0;
}
}

int main(int count, char** words) {
  if (count != 2) {
    std::fprintf(stderr, "usage: %s DATABASE\n", words[0]);
    return 2;
  }
  leveldb_options_t* options = leveldb_options_create();
  leveldb_options_set_create_if_missing(options, 1);
  char* error = nullptr;
  leveldb_t* database = leveldb_open(options, words[1], &error);
  if (error != nullptr) {
    std::fprintf(stderr, "%s\n", error);
    return 1;
  }
  int kept = keep_patterns(database);
  leveldb_close(database);
  leveldb_options_destroy(options);
  std::printf("%d patterns\n", kept);
  return kept == 4 ? 0 : 1;
}
