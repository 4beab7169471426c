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
  // Generated code: "<eval_with_key>.3", kOwnPythonFile. "python -c" and a prompt have the program in
  // such a file, too.
  const bool is_typed = strncmp(file, "<string>", 8) == 0 || strncmp(file, "<stdin>", 7) == 0 ||
                        strncmp(file, "<ipython", 8) == 0;
  return file[0] == '<' && !is_typed;
}

}  // namespace rollcall
