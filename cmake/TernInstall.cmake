# What `cmake --install` puts in place: the library, the plugins for CUDA and MPI beside it where they are built, the headers, the
# program, and a CMake package for outside projects. Its component `wheel` is what pip packs (pyproject.toml): a Python package that has
# the library and the program within itself.
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
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/python/tern" DESTINATION ${python_dir}
          FILES_MATCHING PATTERN "*.py" PATTERN __pycache__ EXCLUDE)

  set(wheel COMPONENT wheel EXCLUDE_FROM_ALL)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/python/tern" DESTINATION . ${wheel}
          FILES_MATCHING PATTERN "*.py" PATTERN __pycache__ EXCLUDE)
  foreach(library tern_python tern_cuda tern_mpi)
    if(TARGET ${library})
      install(TARGETS ${library} LIBRARY DESTINATION tern ${wheel})
    endif()
  endforeach()
  # Once, by the name that is looked for: a wheel has no links.
  install(FILES "$<TARGET_FILE:tern>" DESTINATION tern RENAME "$<TARGET_SONAME_FILE_NAME:tern>" ${wheel})
  if(TARGET tern_cli)
    install(TARGETS tern_cli RUNTIME DESTINATION tern/bin ${wheel})
  endif()
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
