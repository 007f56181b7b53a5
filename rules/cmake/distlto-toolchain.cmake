# A toolchain file: clang of one version, the archiver beside it, and every target linked by distributed ThinLTO.
#
#   cmake -B build --toolchain PATH/distlto-toolchain.cmake [-DDISTLTO_LLVM=22]
#
# CMake's own checks (try_compile) are compiled and linked as without distlto: they read this file too, but nothing of what
# is set for the project.

set(DISTLTO_LLVM 22 CACHE STRING "The version of clang and lld, as in the names of Debian's programs")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES DISTLTO_LLVM)

set(CMAKE_C_COMPILER "clang-${DISTLTO_LLVM}")
set(CMAKE_CXX_COMPILER "clang++-${DISTLTO_LLVM}")

get_property(distlto_check GLOBAL PROPERTY IN_TRY_COMPILE)
if(NOT distlto_check)
  option(THINLTO "Compile to ThinLTO bitcode, and link with distlto" ON)
  # Read at the end of project(), when the compilers are known.
  set(distlto_file "${CMAKE_CURRENT_LIST_DIR}/distlto.cmake")
  if(CMAKE_PROJECT_INCLUDE AND NOT CMAKE_PROJECT_INCLUDE STREQUAL distlto_file)
    message(FATAL_ERROR "distlto: CMAKE_PROJECT_INCLUDE is taken; include ${distlto_file} from ${CMAKE_PROJECT_INCLUDE} instead of using the toolchain file")
  endif()
  set(CMAKE_PROJECT_INCLUDE "${distlto_file}")
endif()
