# The third-party libraries of the product, each found or reported together with the Debian package that has it.
# GoogleTest and Google Benchmark are looked for in tests/ and bench/, where alone they are needed.

set(TERN_MISSING "")

# tern_require(<found> <what> <debian package>): notes a missing dependency; all of them are reported at once.
function(tern_require found what package)
  if(NOT found)
    set(TERN_MISSING "${TERN_MISSING}\n  ${what} (Debian package ${package})" PARENT_SCOPE)
  endif()
endfunction()

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(OpenMP QUIET COMPONENTS CXX)
tern_require("${OpenMP_CXX_FOUND}" "OpenMP for the C++ compiler" "g++, or libomp-dev for clang")
find_package(fmt QUIET CONFIG)
tern_require("${fmt_FOUND}" "fmt" "libfmt-dev")
find_package(nlohmann_json QUIET CONFIG)
tern_require("${nlohmann_json_FOUND}" "nlohmann-json" "nlohmann-json3-dev")
find_package(ZLIB QUIET)
tern_require("${ZLIB_FOUND}" "zlib" "zlib1g-dev")
find_package(ISAL QUIET)
tern_require("${ISAL_FOUND}" "ISA-L" "libisal-dev")
find_package(JPEG QUIET)
tern_require("${JPEG_FOUND}" "libjpeg" "libjpeg62-turbo-dev")
find_package(PNG QUIET)
tern_require("${PNG_FOUND}" "libpng" "libpng-dev")
if(TERN_BUILD_CLI)
  find_package(CLI11 QUIET CONFIG)
  tern_require("${CLI11_FOUND}" "CLI11" "libcli11-dev")
  find_package(RE2 QUIET MODULE)
  tern_require("${RE2_FOUND}" "RE2" "libre2-dev")
endif()

if(TERN_MISSING)
  message(FATAL_ERROR "Tern cannot be configured, these libraries are missing:${TERN_MISSING}\n"
                      "Install them with:  make setup")
endif()
