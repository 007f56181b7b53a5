# Links a CMake project, or some targets of it, by distributed ThinLTO. Needs CMake 3.21, clang and lld.
#
#   cmake -B build -DCMAKE_CXX_COMPILER=clang++-22 -DTHINLTO=ON -DCMAKE_PROJECT_INCLUDE=PATH/distlto.cmake
#
# or, in a CMakeLists.txt after project():
#
#   include(PATH/distlto.cmake)
#   distlto_enable()              # this directory and those below it, targets that are made after it
#   distlto_enable(TARGET...)     # these targets

include_guard(DIRECTORY)

option(THINLTO "Compile to ThinLTO bitcode, and link with distlto" OFF)
set(DISTLTO_OPTIONS "" CACHE STRING "Options of distlto link, separated by semicolons")

# A macro, so that the variables are those of the directory that calls it.
macro(distlto_enable)
  if(CMAKE_VERSION VERSION_LESS 3.21)
    message(FATAL_ERROR "distlto: linker launchers need CMake 3.21; this is ${CMAKE_VERSION}")
  endif()
  find_program(DISTLTO_PROGRAM distlto DOC "The program distlto")
  if(NOT DISTLTO_PROGRAM)
    message(FATAL_ERROR "distlto was not found in PATH; name it with -DDISTLTO_PROGRAM=PATH")
  endif()
  foreach(distlto_language IN ITEMS C CXX)
    if(CMAKE_${distlto_language}_COMPILER_LOADED AND NOT CMAKE_${distlto_language}_COMPILER_ID STREQUAL "Clang")
      message(FATAL_ERROR "distlto: the ${distlto_language} compiler is ${CMAKE_${distlto_language}_COMPILER_ID}; ThinLTO needs clang")
    endif()
  endforeach()
  set(distlto_launcher "${DISTLTO_PROGRAM}" link ${DISTLTO_OPTIONS} --)
  if(${ARGC} EQUAL 0)
    # Also for a language that a directory below enables.
    foreach(distlto_language IN ITEMS C CXX)
      set(CMAKE_${distlto_language}_LINKER_LAUNCHER ${distlto_launcher})
    endforeach()
    add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-flto=thin>")
    add_link_options(-flto=thin -fuse-ld=lld)
  endif()
  foreach(distlto_target ${ARGN})
    set_property(TARGET ${distlto_target} PROPERTY C_LINKER_LAUNCHER ${distlto_launcher})
    set_property(TARGET ${distlto_target} PROPERTY CXX_LINKER_LAUNCHER ${distlto_launcher})
    target_compile_options(${distlto_target} PRIVATE "$<$<COMPILE_LANGUAGE:C,CXX>:-flto=thin>")
    # What links bitcode of this target needs lld as well.
    target_link_options(${distlto_target} PUBLIC -flto=thin -fuse-ld=lld)
  endforeach()
endmacro()

if(THINLTO)
  distlto_enable()
endif()
