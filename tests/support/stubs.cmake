# SPDX-License-Identifier: Apache-2.0
# Shared libraries that stand in for NCCL and CUDA: add_stub(TARGET NAME SOVERSION FOLDER SOURCE...).
function(add_stub target name version folder)
  add_library(${target} SHARED ${ARGN})
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME ${name} SOVERSION ${version} LIBRARY_OUTPUT_DIRECTORY "${folder}")
  target_include_directories(${target} PRIVATE "${ROLLCALL_ROOT}")
  target_link_libraries(${target} PRIVATE NcclHeaders::NcclHeaders)
endfunction()
