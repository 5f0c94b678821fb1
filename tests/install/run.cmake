# Installs the build into a fresh prefix, then configures, builds and runs the outside project of this folder against it, and
# runs the installed program; and what goes into a wheel into another prefix, to use it from there. Called by ctest with: BUILD_DIR,
# SOURCE_DIR (this folder), WORK_DIR, CXX, and PYTHON where the Python module is built.

function(run)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "failed (${result}): ${ARGN}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE "${WORK_DIR}")
run("${CMAKE_COMMAND}" --install "${BUILD_DIR}" --prefix "${WORK_DIR}/prefix")
run("${CMAKE_COMMAND}" -G Ninja -S "${SOURCE_DIR}" -B "${WORK_DIR}/build" "-DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix"
    "-DCMAKE_CXX_COMPILER=${CXX}")
run("${CMAKE_COMMAND}" --build "${WORK_DIR}/build")
run("${WORK_DIR}/build/outside")
if(NOT output STREQUAL "sum 6, gradient 12\n")
  message(FATAL_ERROR "the outside program printed: ${output}")
endif()
run("${WORK_DIR}/prefix/bin/tern" --help)
if(PYTHON)
  file(GLOB package "${WORK_DIR}/prefix/lib*/python*/site-packages" "${WORK_DIR}/prefix/lib/*/python*/site-packages")
  run("${CMAKE_COMMAND}" -E env "PYTHONPATH=${package}" "${PYTHON}" -c "print(__import__('tern').ones(2).sum().item())")
  if(NOT output STREQUAL "2.0\n")
    message(FATAL_ERROR "the installed Python module printed: ${output}")
  endif()

  # What pip packs: in itself whole, at any place.
  run("${CMAKE_COMMAND}" --install "${BUILD_DIR}" --component wheel --prefix "${WORK_DIR}/wheel")
  run("${CMAKE_COMMAND}" -E env "PYTHONPATH=${WORK_DIR}/wheel" "${PYTHON}" -B "${SOURCE_DIR}/wheel.py" "${WORK_DIR}/wheel/tern")
  if(NOT output STREQUAL "a training step\n")
    message(FATAL_ERROR "the package of the wheel printed: ${output}")
  endif()
  run("${CMAKE_COMMAND}" -E env "PYTHONPATH=${WORK_DIR}/wheel" "${PYTHON}" -B -c "__import__('tern._program')._program.main()" --help)
endif()
message(STATUS "an outside project found, built and ran with the installed package")
