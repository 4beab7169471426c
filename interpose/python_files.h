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

inline bool IsPythonLibraryFile(const char* file) {
  for (const char* mark : {"/site-packages/", "/dist-packages/", "/lib/python3.", "<frozen ",
                           "/bin/torchrun", "/bin/accelerate", "/bin/deepspeed"}) {
    if (strstr(file, mark) != nullptr) return true;
  }
  // Generated code: "<eval_with_key>.3". "python -c" and a prompt have the program in such a file, too.
  const bool is_typed = strncmp(file, "<string>", 8) == 0 || strncmp(file, "<stdin>", 7) == 0 ||
                        strncmp(file, "<ipython", 8) == 0;
  if (file[0] == '<' && !is_typed) return true;
  // Cython modules have the path of their source at build time.
  const size_t length = strlen(file);
  return length > 4 && strcmp(file + length - 4, ".pyx") == 0;
}

}  // namespace rollcall
