# Compiler settings common to every target: standard, optimization, warnings, sanitizers, ccache, output folders.
# Flags of a single room stand with that room in tern/CMakeLists.txt.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# -O2 keeps the build short; the files whose loops matter ask for -O3 themselves (the kernels of backends/cpu).
if(CMAKE_CXX_FLAGS_RELEASE STREQUAL "-O3 -DNDEBUG")
  set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
endif()

add_library(tern_warnings INTERFACE)
target_compile_options(tern_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wpedantic $<$<BOOL:${TERN_WERROR}>:-Werror>>)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # Of the CPU kernels: pragmas for GCC's vectoriser, the macro that rounds to half precision, conditions without branches.
  target_compile_options(tern_warnings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-unknown-pragmas -Wno-c99-extensions -Wno-bitwise-instead-of-logical>)
endif()

# Functions exported from a shared library may be replaced from outside only if the compiler must assume so;
# nobody replaces ours, so calls inside the library are inlined and bound directly.
include(CheckCXXCompilerFlag)
check_cxx_compiler_flag(-fno-semantic-interposition TERN_HAVE_NO_SEMANTIC_INTERPOSITION)
if(TERN_HAVE_NO_SEMANTIC_INTERPOSITION)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fno-semantic-interposition>)
endif()

if(TERN_SANITIZE)
  add_compile_options(-fsanitize=${TERN_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${TERN_SANITIZE})
  if(TERN_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=all)
  endif()
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # The sources ask as GCC answers. Functions of libraries that are looked up by name have no type that could be checked.
    string(TOUPPER "${TERN_SANITIZE}" names)
    string(REPLACE "," ";" names "${names}")
    list(FILTER names INCLUDE REGEX "ADDRESS|THREAD")
    list(TRANSFORM names REPLACE "(.+)" "__SANITIZE_\\1__")
    add_compile_definitions(${names})
    if(TERN_SANITIZE MATCHES "undefined")
      add_compile_options(-fno-sanitize=function)
    endif()
  endif()
  # GCC takes the checks that sanitizers add for uses of what is not initialized; the other builds look for these.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-maybe-uninitialized)
  endif()
endif()

# libFuzzer steers by the branches that an input takes.
if(TERN_BUILD_FUZZERS)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

find_program(TERN_CCACHE ccache)
if(TERN_CCACHE)
  # One cache for all clones, and what ccache asks for where headers are precompiled.
  set(ccache "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1
             CCACHE_SLOPPINESS=pch_defines,time_macros "${TERN_CCACHE}")
  foreach(language CXX CUDA)
    if(NOT CMAKE_${language}_COMPILER_LAUNCHER)
      set(CMAKE_${language}_COMPILER_LAUNCHER ${ccache})
    endif()
  endforeach()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
  endif()
endif()

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
