// SPDX-License-Identifier: Apache-2.0
// Distinguishes Python files of the interpreter or of an installed package from those of the
// program, so that a report shows a line of the program and not one of torch.
#pragma once

#include <stddef.h>
#include <string.h>

#include <initializer_list>

namespace rollcall {

inline bool IsPythonLibraryFile(const char* file) {
  for (const char* mark : {"/site-packages/", "/dist-packages/", "/lib/python3.", "<frozen "}) {
    if (strstr(file, mark) != nullptr) return true;
  }
  // Cython modules have the path of their source at build time.
  const size_t length = strlen(file);
  return length > 4 && strcmp(file + length - 4, ".pyx") == 0;
}

}  // namespace rollcall
