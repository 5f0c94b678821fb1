# The transport over MPI, the plugin libtern_mpi.so, which the library opens in processes that MPI started. Without MPI nothing here
# has an effect.

set(TERN_MPI AUTO CACHE STRING "The transport between processes, a plugin: AUTO (where MPI is found), ON or OFF")
set_property(CACHE TERN_MPI PROPERTY STRINGS AUTO ON OFF)

set(TERN_MPI_OFF_REASON "")
if(TERN_MPI STREQUAL "OFF")
  set(TERN_MPI_OFF_REASON "TERN_MPI is OFF")
elseif(NOT BUILD_SHARED_LIBS)
  set(TERN_MPI_OFF_REASON "a plugin needs the shared library (BUILD_SHARED_LIBS)")
else()
  enable_language(C)
  find_package(MPI QUIET COMPONENTS C)
  if(NOT MPI_C_FOUND)
    set(TERN_MPI_OFF_REASON "MPI was not found (Debian packages libopenmpi-dev and openmpi-bin)")
  endif()
endif()

if(NOT TERN_MPI_OFF_REASON)
  message(STATUS "MPI: version ${MPI_C_VERSION} of its standard")
elseif(TERN_MPI STREQUAL "ON")
  message(FATAL_ERROR "TERN_MPI is ON, but ${TERN_MPI_OFF_REASON}")
else()
  message(STATUS "MPI: not used: ${TERN_MPI_OFF_REASON}")
endif()

# tern_transport(<name> <folder>): the module lib<name>.so of the sources in a folder, beside the library, which it links.
function(tern_transport name folder)
  if(TERN_MPI_OFF_REASON)
    return()
  endif()
  file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cpp")
  add_library(${name} MODULE ${sources})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_compile_definitions(${name} PRIVATE TERN_VERSION="${PROJECT_VERSION}" OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
  target_link_libraries(${name} PRIVATE tern tern_warnings MPI::MPI_C fmt::fmt)
  set_target_properties(${name} PROPERTIES CXX_VISIBILITY_PRESET hidden INSTALL_RPATH "$ORIGIN")
endfunction()
