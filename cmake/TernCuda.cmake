# The CUDA backend: whether it is built, for which GPUs, and tern_plugin(), which makes the plugin libtern_cuda.so of a room.
# Without nvcc nothing here has an effect. libcuda and NVML are never linked; the CUDA runtime is linked statically, cuBLASLt
# and cuDNN are opened by the plugin when they are first needed.

set(TERN_CUDA AUTO CACHE STRING "The CUDA backend, a plugin: AUTO (where nvcc and the toolkit are found), ON or OFF")
set_property(CACHE TERN_CUDA PROPERTY STRINGS AUTO ON OFF)
set(TERN_CUDA_ARCHITECTURES "" CACHE STRING
    "GPUs to compile for, as CMAKE_CUDA_ARCHITECTURES takes them; empty: those of this machine, else 80 and 90 with PTX of 90")

# Why there is no CUDA backend; empty where there is one.
set(TERN_CUDA_OFF_REASON "")
if(TERN_CUDA STREQUAL "OFF")
  set(TERN_CUDA_OFF_REASON "TERN_CUDA is OFF")
elseif(NOT BUILD_SHARED_LIBS)
  set(TERN_CUDA_OFF_REASON "a plugin needs the shared library (BUILD_SHARED_LIBS)")
elseif(TERN_SANITIZE OR TERN_BUILD_FUZZERS)
  set(TERN_CUDA_OFF_REASON "nvcc takes no sanitizer")
else()
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    find_package(CUDAToolkit 12.8 QUIET)
    if(NOT CUDAToolkit_FOUND OR NOT TARGET CUDA::cudart_static)
      set(TERN_CUDA_OFF_REASON "the toolkit of ${CMAKE_CUDA_COMPILER} is incomplete or older than 12.8")
    elseif(NOT CUDA_CUBLASLT_HEADER)
      find_path(CUDA_CUBLASLT_HEADER cublasLt.h PATHS ${CUDAToolkit_INCLUDE_DIRS} NO_DEFAULT_PATH)
      find_path(CUDA_CUDNN_HEADER cudnn.h PATHS ${CUDAToolkit_INCLUDE_DIRS} NO_DEFAULT_PATH)
      find_path(CUDA_CUDNN_HEADER cudnn.h PATHS ENV CUDNN_HOME PATH_SUFFIXES include)
      mark_as_advanced(CUDA_CUBLASLT_HEADER CUDA_CUDNN_HEADER)
      if(NOT CUDA_CUBLASLT_HEADER)
        set(TERN_CUDA_OFF_REASON "cublasLt.h is missing")
      elseif(NOT CUDA_CUDNN_HEADER)
        set(TERN_CUDA_OFF_REASON "cudnn.h is missing")
      endif()
    endif()
  else()
    set(TERN_CUDA_OFF_REASON "nvcc was not found")
  endif()
endif()

if(TERN_CUDA_OFF_REASON)
  if(TERN_CUDA STREQUAL "ON")
    message(FATAL_ERROR "TERN_CUDA is ON, but ${TERN_CUDA_OFF_REASON}")
  endif()
  message(STATUS "CUDA backend: not built: ${TERN_CUDA_OFF_REASON}")
else()
  set(architectures "${TERN_CUDA_ARCHITECTURES}")
  if(NOT architectures)
    execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
                    OUTPUT_VARIABLE capabilities RESULT_VARIABLE failed ERROR_QUIET)
    if(failed EQUAL 0)
      string(REGEX MATCHALL "[0-9]+\\.[0-9]+" architectures "${capabilities}")
      string(REPLACE "." "" architectures "${architectures}")
      list(REMOVE_DUPLICATES architectures)
      list(TRANSFORM architectures APPEND "-real")
    endif()
  endif()
  if(NOT architectures)
    set(architectures "80-real;90")
  endif()
  set(CMAKE_CUDA_ARCHITECTURES "${architectures}")
  if(NOT CMAKE_CUDA_HOST_COMPILER AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(CMAKE_CUDA_HOST_COMPILER "${CMAKE_CXX_COMPILER}")
  endif()
  enable_language(CUDA)
  # The compiler's own folders, named as system folders, would come in the wrong order.
  list(APPEND CMAKE_CUDA_IMPLICIT_INCLUDE_DIRECTORIES ${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES})
  list(REMOVE_DUPLICATES CMAKE_CUDA_IMPLICIT_INCLUDE_DIRECTORIES)
  # CMake 3.25 does not know that nvcc has C++20.
  foreach(kind STANDARD EXTENSION)
    if(NOT CMAKE_CUDA20_${kind}_COMPILE_OPTION)
      set(CMAKE_CUDA20_${kind}_COMPILE_OPTION "-std=c++20")
    endif()
  endforeach()
  message(STATUS "CUDA backend: CUDA ${CUDAToolkit_VERSION}, architectures ${CMAKE_CUDA_ARCHITECTURES}")
endif()

# tern_plugin(<name> <folder>): the module lib<name>.so of all sources below a folder, beside the library, which it links.
function(tern_plugin name folder)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${folder}/*.cpp" "${folder}/*.cu")
  add_library(${name} MODULE ${sources})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_include_directories(${name} SYSTEM PRIVATE "${CUDA_CUBLASLT_HEADER}" "${CUDA_CUDNN_HEADER}")
  target_compile_definitions(${name} PRIVATE TERN_VERSION="${PROJECT_VERSION}")
  target_compile_options(${name} PRIVATE
    $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr --expt-extended-lambda -lineinfo
      -Xcompiler=-Wall,-Wextra,-Wshadow$<$<BOOL:${TERN_WERROR}>:$<COMMA>-Werror>
      $<$<BOOL:${TERN_WERROR}>:-Werror=all-warnings>>)
  target_link_libraries(${name} PRIVATE tern tern_warnings CUDA::cudart_static fmt::fmt)
  set_target_properties(${name} PROPERTIES
    CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN OFF
    BUILD_RPATH "${CUDAToolkit_LIBRARY_DIR}" INSTALL_RPATH "$ORIGIN;${CUDAToolkit_LIBRARY_DIR}")
  target_link_options(${name} PRIVATE -Wl,-Bsymbolic-functions -Wl,-z,defs -Wl,--exclude-libs,ALL)
endfunction()
