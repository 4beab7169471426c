// SPDX-License-Identifier: Apache-2.0
// Texts of strangers as people may see them.
#pragma once

#include <string.h>

#include <cstddef>
#include <string>

namespace rollcall {

// Returns at most `most` bytes of the text, up to its NUL. Replaces all but printable ASCII by '?'.
inline std::string Printable(const char* text, size_t most) {
  std::string out(text, strnlen(text, most));
  for (char& c : out) {
    if (c < 0x20 || c > 0x7e) c = '?';
  }
  return out;
}

}  // namespace rollcall
