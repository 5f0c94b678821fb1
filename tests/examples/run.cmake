# Runs a program of examples/ in an empty folder and compares what it prints with a kept file, in which every time is "# ms"
# and every share of right answers "# %". Called by ctest with: PROGRAM, EXPECTED (the file), GPUS (how many simulated ones),
# WORK_DIR (its folder `run` is emptied).
cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE "${WORK_DIR}")
file(MAKE_DIRECTORY "${WORK_DIR}/run")
# Real GPUs are hidden. One thread: threads that wait for each other on a busy machine make small networks slow.
execute_process(COMMAND "${CMAKE_COMMAND}" -E env --unset=TERN_SIM TERN_SIM_GPUS=${GPUS} CUDA_VISIBLE_DEVICES=
                        TERN_NUM_THREADS=1 "${PROGRAM}"
                WORKING_DIRECTORY "${WORK_DIR}/run" OUTPUT_VARIABLE actual ERROR_VARIABLE errors RESULT_VARIABLE result)
if(NOT result STREQUAL "0")
  message(FATAL_ERROR "failed (${result}): ${PROGRAM}\n${actual}${errors}")
endif()
if(NOT errors STREQUAL "")
  message(FATAL_ERROR "wrote to standard error: ${PROGRAM}\n${errors}")
endif()

string(REGEX REPLACE "[0-9]+\\.[0-9]+ (ms|%)" "# \\1" actual "${actual}")
set(expected "")
if(EXISTS "${EXPECTED}")
  file(READ "${EXPECTED}" expected)
endif()
if(NOT actual STREQUAL expected)
  file(WRITE "${WORK_DIR}/actual.txt" "${actual}")
  find_program(DIFF diff)
  if(DIFF AND EXISTS "${EXPECTED}")
    execute_process(COMMAND "${DIFF}" -u "${EXPECTED}" "${WORK_DIR}/actual.txt" OUTPUT_VARIABLE actual)
  endif()
  message("${actual}")
  message(FATAL_ERROR "${PROGRAM} prints something else than it did. If that is right: "
                      "cp ${WORK_DIR}/actual.txt ${EXPECTED}")
endif()
