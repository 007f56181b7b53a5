# Links a CMake project by distributed ThinLTO while THINLTO is on. Needs CMake 3.21, clang and lld.
#
#   cmake -B build -DCMAKE_CXX_COMPILER=clang++ -DTHINLTO=ON -DCMAKE_PROJECT_INCLUDE=PATH/distlto.cmake
#
# or, in a CMakeLists.txt after project(): include(PATH/distlto.cmake). Holds for the directory and those below it, for
# targets that are made after it.

include_guard(DIRECTORY)

option(THINLTO "Compile to ThinLTO bitcode, and link with distlto" OFF)
set(DISTLTO_OPTIONS "" CACHE STRING "Options of distlto link, separated by semicolons")

if(THINLTO)
  if(CMAKE_VERSION VERSION_LESS 3.21)
    message(FATAL_ERROR "distlto: linker launchers need CMake 3.21; this is ${CMAKE_VERSION}")
  endif()
  find_program(DISTLTO_PROGRAM distlto DOC "The program distlto")
  if(NOT DISTLTO_PROGRAM)
    message(FATAL_ERROR "distlto was not found in PATH; name it with -DDISTLTO_PROGRAM=PATH")
  endif()
  foreach(distlto_language IN ITEMS C CXX)
    if(CMAKE_${distlto_language}_COMPILER_LOADED)
      if(NOT CMAKE_${distlto_language}_COMPILER_ID STREQUAL "Clang")
        message(FATAL_ERROR "distlto: the ${distlto_language} compiler is ${CMAKE_${distlto_language}_COMPILER_ID}; ThinLTO needs clang")
      endif()
      set(CMAKE_${distlto_language}_LINKER_LAUNCHER "${DISTLTO_PROGRAM}" link ${DISTLTO_OPTIONS} --)
    endif()
  endforeach()
  add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-flto=thin>")
  add_link_options(-flto=thin -fuse-ld=lld)
endif()
