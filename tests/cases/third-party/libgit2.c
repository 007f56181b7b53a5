// libgit2 and its command-line program, built by CMake; makes a repository, stores and reads objects.
//# before: %cmake -G Ninja -S %sources(libgit2-sys)/libgit2 -B build -DCMAKE_BUILD_TYPE=Release -Wno-dev
//#   -DCMAKE_C_COMPILER=%clang "-DCMAKE_C_FLAGS=-flto=thin -w" -DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld
//#   -DCMAKE_AR=%ar -DCMAKE_RANLIB=/bin/true -DUSE_HTTPS=OFF -DUSE_SSH=OFF -DBUILD_TESTS=OFF -DBUILD_SHARED_LIBS=OFF
//#   -DREGEX_BACKEND=builtin -DUSE_BUNDLED_ZLIB=ON -DUSE_HTTP_PARSER=builtin -DBUILD_CLI=ON
//#   -DCMAKE_C_LINK_EXECUTABLE=/bin/true
//# before: %cmake --build build
//# link: -O3 %glob(build/src/**/*.o) %glob(build/deps/**/*.o) -lrt -lpthread
//# modules: 232
//# run: %out help
//# run: %out init --bare %dir/repository
//# run: env -C %dir/repository %work/%out hash-object -w %work/text
//# run: env -C %dir/repository %work/%out cat-file -p 3b18e512dba79e4c8300dd08aeb37f8e728b8dad
//--- text
hello world
