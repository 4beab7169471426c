// SPDX-License-Identifier: Apache-2.0
// Which Python files are the interpreter's or an installed package's, so that a line of the
// program itself can be told from one of torch's.
#pragma once

#include <stddef.h>
#include <string.h>

#include <initializer_list>

namespace rollcall {

inline bool IsOfPythonLibrary(const char* file) {
  for (const char* mark : {"/site-packages/", "/dist-packages/", "/lib/python3.", "<frozen "}) {
    if (strstr(file, mark) != nullptr) return true;
  }
  // Cython's modules give the path of their source as it was when they were built.
  const size_t length = strlen(file);
  return length > 4 && strcmp(file + length - 4, ".pyx") == 0;
}

}  // namespace rollcall
