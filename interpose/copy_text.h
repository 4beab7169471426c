// SPDX-License-Identifier: Apache-2.0
// Copies a line of text into a field of the segment. Pure; for any context.
#pragma once

#include <stddef.h>

namespace rollcall {

// Copies up to the first line break, and cuts the text to the size of the field. Calls no function
// of the C library: in a job with ThreadSanitizer that would be an access that it sees, without the
// order between threads, which it does not see in this library. It would report a race.
inline void CopyText(char* out, size_t size, const char* text) {
  size_t length = 0;
  while (text != nullptr && length < size - 1 && text[length] != '\0' && text[length] != '\n') {
    out[length] = text[length];
    ++length;
  }
  out[length] = '\0';
}

}  // namespace rollcall
