# Finds OpenBLAS built on OpenMP, so that it shares one thread pool with our loops and with oneDNN. Defines OpenBLAS::openblas.
# Debian keeps each flavour in a folder of its own and lets /etc/alternatives choose one: the OpenMP folder is asked first,
# and being outside the default search path it is also recorded in the RPATH.
find_path(OpenBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES openblas-openmp ${CMAKE_LIBRARY_ARCHITECTURE}/openblas-openmp openblas)
find_library(OpenBLAS_LIBRARY openblas PATH_SUFFIXES openblas-openmp ${CMAKE_LIBRARY_ARCHITECTURE}/openblas-openmp)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OpenBLAS REQUIRED_VARS OpenBLAS_LIBRARY OpenBLAS_INCLUDE_DIR)
mark_as_advanced(OpenBLAS_INCLUDE_DIR OpenBLAS_LIBRARY)
if(OpenBLAS_FOUND AND NOT TARGET OpenBLAS::openblas)
  add_library(OpenBLAS::openblas UNKNOWN IMPORTED)
  set_target_properties(OpenBLAS::openblas PROPERTIES IMPORTED_LOCATION "${OpenBLAS_LIBRARY}"
                                                      INTERFACE_INCLUDE_DIRECTORIES "${OpenBLAS_INCLUDE_DIR}")
endif()
