// SPDX-License-Identifier: Apache-2.0
// Whether people's words are text. CleanText() makes text of any bytes; words that somebody has just
// typed are refused instead, because what is left of them would mean something else.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/clean_text.h"

namespace rollcall {

inline bool IsUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t length = clean_text::At(text, i).length;
    if (length == 0) return false;
    i += length;
  }
  return true;
}

}  // namespace rollcall
