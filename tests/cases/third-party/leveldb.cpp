// LevelDB as a static archive, built by CMake: C++ with virtual interfaces, threads and statics; writes and reads a database.
//# before: %cmake -G Ninja -S %sources(leveldb-sys)/deps/leveldb-1.22 -B build -DCMAKE_BUILD_TYPE=Release -Wno-dev
//#   -DCMAKE_POLICY_VERSION_MINIMUM=3.5 -DCMAKE_C_COMPILER=%clang -DCMAKE_CXX_COMPILER=%clang++
//#   -DCMAKE_CXX_FLAGS=-flto=thin -DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld -DCMAKE_AR=%ar -DCMAKE_RANLIB=/bin/true
//#   -DLEVELDB_BUILD_TESTS=OFF -DLEVELDB_BUILD_BENCHMARKS=OFF
//# before: %cmake --build build --target leveldb
//# flags: -std=c++11 -I%sources(leveldb-sys)/deps/leveldb-1.22/include
//# link: main.o build/libleveldb.a -pthread
//# run: rm -rf %dir/database
//# run: %out %dir/database
//--- main.cpp
#include "leveldb/cache.h"
#include "leveldb/db.h"
#include "leveldb/filter_policy.h"
#include "leveldb/write_batch.h"
#include <cstdio>
#include <memory>
#include <string>

int main(int count, char **arguments) {
  leveldb::Options options;
  options.create_if_missing = true;
  options.write_buffer_size = 1 << 16;
  std::unique_ptr<const leveldb::FilterPolicy> filter(leveldb::NewBloomFilterPolicy(10));
  options.filter_policy = filter.get();
  leveldb::DB *opened = nullptr;
  leveldb::Status status = leveldb::DB::Open(options, arguments[count - 1], &opened);
  if (!status.ok())
    return std::puts(status.ToString().c_str()), 1;
  std::unique_ptr<leveldb::DB> database(opened);
  for (int i = 0; i < 20000; i++) {
    leveldb::WriteBatch batch;
    batch.Put("key" + std::to_string(i * 7919 % 20000), "value" + std::to_string(i));
    if (i % 3 == 0)
      batch.Delete("key" + std::to_string(i / 2));
    database->Write(leveldb::WriteOptions(), &batch);
  }
  database->CompactRange(nullptr, nullptr);
  unsigned found = 0, sum = 0;
  std::unique_ptr<leveldb::Iterator> entry(database->NewIterator(leveldb::ReadOptions()));
  for (entry->SeekToFirst(); entry->Valid(); entry->Next(), found++)
    for (char letter : entry->value().ToString())
      sum = sum * 31 + static_cast<unsigned char>(letter);
  std::string value;
  bool missing = database->Get(leveldb::ReadOptions(), "no such key", &value).IsNotFound();
  std::printf("%u entries, sum %u, missing %d\n", found, sum, missing);
}
