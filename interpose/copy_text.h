// SPDX-License-Identifier: Apache-2.0
// Copies a line of text into a field of the segment. Pure; for any context.
#pragma once

#include <stddef.h>
#include <string.h>

namespace rollcall {

// Copies up to the first line break, and cuts the text to the size of the field.
inline void CopyText(char* out, size_t size, const char* text) {
  size_t length = 0;
  if (text != nullptr) {
    while (length < size - 1 && text[length] != '\0' && text[length] != '\n') ++length;
    memcpy(out, text, length);
  }
  out[length] = '\0';
}

}  // namespace rollcall
