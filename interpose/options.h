// SPDX-License-Identifier: Apache-2.0
// The library's settings, all from the environment, in one table. Read when the
// process makes its first NCCL call.
//
//   OPTION(field, variable, default, help)
#pragma once

#include <stdlib.h>
#include <string.h>

namespace rollcall {

#define ROLLCALL_LIBRARY_OPTIONS(OPTION)                                                    \
  OPTION(enabled, "ROLLCALL", true, "0: the library does nothing at all")                   \
  OPTION(markers, "ROLLCALL_MARKERS", true, "0: the GPU is not asked to note its progress") \
  OPTION(graph_markers, "ROLLCALL_GRAPH_MARKERS", false,                                    \
         "1: in CUDA graphs too, by nodes around each call")                                \
  OPTION(stack_signal, "ROLLCALL_STACK_SIGNAL", true,                                       \
         "0: no signal by which an agent asks threads for their stacks")                    \
  OPTION(call_sites, "ROLLCALL_CALL_SITES", false,                                          \
         "1: each record says which line of Python made the call")                          \
  OPTION(python_errors, "ROLLCALL_PYTHON_ERRORS", true,                                     \
         "0: sys.excepthook is not wrapped, so verdicts do not know exceptions")            \
  OPTION(tensor_shapes, "ROLLCALL_TENSOR_SHAPES", false,                                    \
         "1: PyTorch's collectives tell their tensors' shapes and their groups' names")     \
  OPTION(sigquit, "ROLLCALL_SIGQUIT", true, "0: SIGQUIT ends the process, as without the library")

struct LibraryOptions {
#define OPTION(field, variable, value, help) bool field = value;
  ROLLCALL_LIBRARY_OPTIONS(OPTION)
#undef OPTION
};

// Only "0" means no: a stray value must not blind people.
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
