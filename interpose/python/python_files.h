// SPDX-License-Identifier: Apache-2.0
// Distinguishes Python files of the interpreter, of an installed package, of a launcher and of the
// library itself from those of the program: a report shows a line of the program, not one of torch.
#pragma once

#include <stddef.h>
#include <string.h>

#include <initializer_list>

namespace rollcall {

// The file name of the Python code that the library adds to a process.
inline constexpr char kOwnPythonFile[] = "<rollcall>";

inline bool PathEndsWith(const char* path, const char* end) {
  const size_t length = strlen(path);
  const size_t of_end = strlen(end);
  return length > of_end && strcmp(path + length - of_end, end) == 0;
}

inline bool IsPythonLibraryFile(const char* file) {
  for (const char* mark : {"/site-packages/", "/dist-packages/", "/lib/python3.", "<frozen "}) {
    if (strstr(file, mark) != nullptr) return true;
  }
  // Launchers; and Cython modules, which have the path of their source at build time.
  for (const char* end : {"/bin/torchrun", "/bin/accelerate", "/bin/deepspeed", ".pyx"}) {
    if (PathEndsWith(file, end)) return true;
  }
  // Generated code: "<eval_with_key>.3". Programs that somebody types or sends have such files,
  // too:
  // "<string>", "<stdin>", "<ipython-input-1>", "<command-4092>", "<console>".
  for (const char* begin : {"<eval_with_key>", "<frozen ", "<__array_function__", "<attrs ",
                            "<decorator-gen", "<makefun", "<template", "<rollcall"}) {
    if (strncmp(file, begin, strlen(begin)) == 0) return true;
  }
  return false;
}

}  // namespace rollcall
