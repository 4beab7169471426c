# SPDX-License-Identifier: Apache-2.0
# The compiler options and the output folders of this tree.

get_filename_component(ROLLCALL_ROOT "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)

set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
if(ROLLCALL_PORTABLE AND CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  # Position-independent code finds symbols through a table of addresses (GOT). Debian's libc.a for aarch64
  # (-fpic) reaches only 32 KiB of it, and rollcalld has more.
  add_compile_options($<$<NOT:$<BOOL:$<TARGET_PROPERTY:POSITION_INDEPENDENT_CODE>>>:-fno-pie>)
else()
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
endif()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()

# A program finds librollcall.so and the simulated libraries relative to its own
# folder: in ../lib and ../sim in a build folder, in ../lib/rollcall and
# ../lib/rollcall/sim when installed.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(ROLLCALL_LIB_DIR "${CMAKE_BINARY_DIR}/lib")
set(ROLLCALL_SIM_DIR "${CMAKE_BINARY_DIR}/sim")

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER "${CCACHE}")
  # Without the sloppiness, ccache keeps nothing that uses a precompiled header. Without the others, each
  # build folder has its own objects: the packages of the preset `portable` share most with `release`.
  set(CMAKE_CXX_COMPILER_LAUNCHER
    "${CMAKE_COMMAND};-E;env;CCACHE_SLOPPINESS=pch_defines,time_macros;CCACHE_BASEDIR=${ROLLCALL_ROOT};CCACHE_NOHASHDIR=1;${CCACHE}")
endif()

add_compile_options(-Wall -Wextra -Werror)
# Macros, such as OpenSSL's, put the names of source files into the programs. These names do not begin with
# the folder of the checkout, so that two checkouts build the same programs.
add_compile_options("-fmacro-prefix-map=${ROLLCALL_ROOT}/=")
# Functions, lines and inlined calls, as stacks show them; -g would add types and variables, and
# doubles the time of the build and the size of the programs.
add_compile_options($<$<CONFIG:RelWithDebInfo>:-g1>)

# rollcall_program(TARGET): a program that is shipped. In the preset `portable` it is static, and not
# position-independent, because Debian's libunwind.a is not.
function(rollcall_program target)
  if(NOT ROLLCALL_PORTABLE)
    return()
  endif()
  target_link_options(${target} PRIVATE -static -no-pie)
  target_compile_definitions(${target} PRIVATE ROLLCALL_PORTABLE)
endfunction()

# Two builds of one commit give the same programs, whatever their folders. A build ID is a hash of the
# debug information, too, which names the folder and is not shipped.
if(ROLLCALL_PORTABLE)
  add_link_options(-Wl,--build-id=none)
endif()

# Code that training jobs load (interpose/, tests/sim/) is never built with a
# sanitizer, because the processes that load it have none. All other targets link
# rollcall_sanitize.
set(ROLLCALL_SANITIZE "" CACHE STRING "address,undefined or thread; empty for none")
add_library(rollcall_sanitize INTERFACE)
if(ROLLCALL_SANITIZE)
  # -O1 with both sanitizers takes minutes for each file, so the build uses -O0.
  target_compile_options(rollcall_sanitize INTERFACE
    -fsanitize=${ROLLCALL_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(rollcall_sanitize INTERFACE -fsanitize=${ROLLCALL_SANITIZE})
endif()

# Most of the compiler's time goes into headers and templates that the files of a folder share, so it
# gets up to 16 files at once. OFF: each file alone, for tools that read compile_commands.json.
option(ROLLCALL_UNITY "Compile the files of a folder together" ON)
function(rollcall_unity target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${ROLLCALL_UNITY} UNITY_BUILD_BATCH_SIZE 16)
  if(ROLLCALL_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ takes each file but the first for a header, where such a type would be an error.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()

# rollcall_library(NAME [COLD] [SOURCES FILE...] [DEPS LIBRARY...]): the code of a folder. Gives include
# path, version and sanitizers. COLD: the code waits for people, files or the network, so it is optimised
# less: g++ takes half the time. DEPS: what the folder's headers and sources include, but for what another
# of the DEPS includes. Which folder may include which is the order of add_subdirectory();
# tests/unit/includes_test.py holds it.
function(rollcall_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "COLD" "" "SOURCES;DEPS")
  if(NOT arg_SOURCES)  # headers only
    add_library(${name} INTERFACE)
    target_include_directories(${name} INTERFACE "${ROLLCALL_ROOT}")
    target_link_libraries(${name} INTERFACE ${arg_DEPS})
    return()
  endif()
  add_library(${name} STATIC ${arg_SOURCES})
  target_include_directories(${name} PUBLIC "${ROLLCALL_ROOT}")
  target_compile_definitions(${name} PRIVATE ROLLCALL_VERSION="${PROJECT_VERSION}")
  rollcall_unity(${name})
  if(arg_COLD)
    target_compile_options(${name} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O1>)
  endif()
  # Sanitizers also for users: headers of Abseil's containers differ with them.
  target_link_libraries(${name} PUBLIC ${arg_DEPS} rollcall_sanitize)
endfunction()

# Programs that look for inputs (tests/fuzz/). All code under test counts its edges; with a sanitizer it
# also shows libFuzzer what it compares, which costs more than the code itself.
option(ROLLCALL_FUZZ "Build the fuzz targets as programs; needs clang" OFF)
if(ROLLCALL_FUZZ)
  if(ROLLCALL_SANITIZE)
    target_compile_options(rollcall_sanitize INTERFACE -fsanitize=fuzzer-no-link)
  else()
    target_compile_options(rollcall_sanitize INTERFACE -fsanitize-coverage=inline-8bit-counters)
  endif()
  add_compile_options(-Wno-error)  # clang has other warnings than gcc
endif()
