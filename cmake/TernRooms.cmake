# tern_room(): declares one room of the library as a CMake target that sees only what it may see.
# The list of rooms stands in tern/CMakeLists.txt; scripts/check_includes enforces the same rule on #include lines.

# tern_parse_once(<target>): several sources of a target are compiled as one file, so that headers are parsed once for all of them.
# Two files of a room can then not give one name to two things, even of their own.
function(tern_parse_once target)
  if(TERN_BATCHES)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      target_compile_options(${target} PRIVATE -Wno-subobject-linkage)  # takes sources that are included for headers
    endif()
  endif()
endfunction()

# tern_room(<room> [SEES <room>...] [USES <third-party target>...] [PLUGIN <name>])
# Creates `tern_<room>` (slashes become underscores) from every .cpp below tern/<room>/: an OBJECT library, or an
# INTERFACE library while the room has headers only. USES is not handed on to the rooms that see this one, but
# reaches the final link and, through the property TERN_USES, the tests of the room. A room with PLUGIN is no part of the
# library: it becomes the module lib<name>.so (TernCuda.cmake, TernMpi.cmake) where what it needs is there, else nothing.
function(tern_room room)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "PLUGIN" "SEES;USES")
  if(arg_PLUGIN)
    if(room MATCHES "^transports/")
      tern_transport(${arg_PLUGIN} "${CMAKE_CURRENT_SOURCE_DIR}/${room}")
    elseif(NOT TERN_CUDA_OFF_REASON)
      tern_plugin(${arg_PLUGIN} "${CMAKE_CURRENT_SOURCE_DIR}/${room}")
    endif()
    return()
  endif()
  string(REPLACE "/" "_" name "tern_${room}")
  if(room STREQUAL "backends/cpu")
    file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${room}/*.cpp")
  else()
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${room}/*.cpp")
  endif()
  if(sources)
    add_library(${name} OBJECT ${sources})
    tern_parse_once(${name})
    target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
    target_compile_definitions(${name} PRIVATE TERN_VERSION="${PROJECT_VERSION}")
    target_link_libraries(${name} PRIVATE tern_warnings ${arg_USES})
    set(kind PUBLIC)
    set_property(GLOBAL APPEND PROPERTY TERN_OBJECTS ${name})
  else()
    add_library(${name} INTERFACE)
    target_include_directories(${name} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
    set(kind INTERFACE)
  endif()
  foreach(seen IN LISTS arg_SEES)
    string(REPLACE "/" "_" seen "tern_${seen}")
    target_link_libraries(${name} ${kind} ${seen})
  endforeach()
  set_target_properties(${name} PROPERTIES TERN_USES "${arg_USES}")
  set_property(GLOBAL APPEND PROPERTY TERN_ROOMS ${name})
  set_property(GLOBAL APPEND PROPERTY TERN_USES ${arg_USES})
endfunction()
