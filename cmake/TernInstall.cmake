# What `cmake --install` puts in place: the library, the plugins for CUDA and MPI beside it where they are built, the headers, the
# program, and a CMake package for outside projects.
include(CMakePackageConfigHelpers)

install(TARGETS tern EXPORT ternTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET tern_cuda)
  install(TARGETS tern_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(TARGET tern_mpi)
  install(TARGETS tern_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/tern/" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tern
        FILES_MATCHING PATTERN "*.h" PATTERN "cli" EXCLUDE PATTERN "backends" EXCLUDE PATTERN "transports" EXCLUDE)
if(TARGET tern_cli)
  install(TARGETS tern_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

if(TARGET tern_python)
  set(python_dir "${CMAKE_INSTALL_LIBDIR}/python${Python_VERSION_MAJOR}.${Python_VERSION_MINOR}/site-packages")
  install(TARGETS tern_python LIBRARY DESTINATION ${python_dir}/tern)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/python/tern" DESTINATION ${python_dir} FILES_MATCHING PATTERN "*.py")
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tern)
install(EXPORT ternTargets NAMESPACE tern:: DESTINATION ${package_dir})
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/ternConfig.cmake.in" "${PROJECT_BINARY_DIR}/ternConfig.cmake"
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file("${PROJECT_BINARY_DIR}/ternConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/ternConfig.cmake" "${PROJECT_BINARY_DIR}/ternConfigVersion.cmake" DESTINATION ${package_dir})
if(NOT BUILD_SHARED_LIBS)
  install(FILES cmake/FindISAL.cmake DESTINATION ${package_dir})
endif()
