// SPDX-License-Identifier: Apache-2.0
// Shortens text to a number of bytes.
#pragma once

#include <cstddef>
#include <string>

#include "base/utf8.h"

namespace rollcall {

// Returns at most `most` bytes, with `mark` at the end if it cut something. Never cuts through a
// UTF-8 character.
inline std::string CutText(const std::string& text, size_t most, const std::string& mark = "") {
  if (text.size() <= most) return text;
  if (most < mark.size()) return "";
  size_t end = most - mark.size();
  while (end > 0 && IsUtf8Tail(text[end])) --end;
  return text.substr(0, end) + mark;
}

}  // namespace rollcall
