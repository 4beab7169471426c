// SPDX-License-Identifier: Apache-2.0
// The library's settings, all environment variables, in one table. The library reads them when the
// process makes its first NCCL call.
//
//   OPTION(field, variable, default, help)
#pragma once

#include <stdlib.h>
#include <string.h>

namespace rollcall {

#define ROLLCALL_LIBRARY_OPTIONS(OPTION)                                                           \
  OPTION(enabled, "ROLLCALL", true, "0: the library does nothing at all")                          \
  OPTION(markers, "ROLLCALL_MARKERS", true, "0: the GPU does not record its progress")             \
  OPTION(graph_markers, "ROLLCALL_GRAPH_MARKERS", false,                                           \
         "1: the GPU records its progress in CUDA graphs too, by nodes around each call")          \
  OPTION(stack_signal, "ROLLCALL_STACK_SIGNAL", true,                                              \
         "0: agents cannot request stacks by a signal")                                            \
  OPTION(call_sites, "ROLLCALL_CALL_SITES", false,                                                 \
         "1: each record has the line of Python that made the call")                               \
  OPTION(python_errors, "ROLLCALL_PYTHON_ERRORS", true,                                            \
         "0: Python's hooks for exceptions are not wrapped, so verdicts have none")                \
  OPTION(tensor_shapes, "ROLLCALL_TENSOR_SHAPES", false,                                           \
         "1: records have the tensors' shapes and the groups' names from PyTorch")                 \
  OPTION(network, "ROLLCALL_NETWORK", true,                                                        \
         "0: the states of NCCL's transfers over the network are not recorded")                    \
  OPTION(sigquit, "ROLLCALL_SIGQUIT", true, "0: SIGQUIT ends the process, as without the library") \
  OPTION(sigbus, "ROLLCALL_SIGBUS", true, "0: a segment that is cut short may end the process")

struct LibraryOptions {
#define OPTION(field, variable, value, help) bool field = value;
  ROLLCALL_LIBRARY_OPTIONS(OPTION)
#undef OPTION
};

// Only "0" turns a setting off: a stray value must not disable recording.
inline LibraryOptions ReadLibraryOptions() {
  LibraryOptions options;
  const char* value;
#define OPTION(field, variable, fallback, help) \
  value = getenv(variable);                     \
  if (value != nullptr) options.field = strcmp(value, "0") != 0;
  ROLLCALL_LIBRARY_OPTIONS(OPTION)
#undef OPTION
  return options;
}

}  // namespace rollcall
