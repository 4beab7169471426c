// SPDX-License-Identifier: Apache-2.0
// Shortens text for a place that has room for so many bytes.
#pragma once

#include <cstddef>
#include <string>

namespace rollcall {

// At most `most` bytes, of which the last are `mark` where something was cut. Never cuts through a
// character of UTF-8.
inline std::string CutText(const std::string& text, size_t most, const std::string& mark) {
  if (text.size() <= most) return text;
  if (most < mark.size()) return "";
  size_t end = most - mark.size();
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + mark;
}

}  // namespace rollcall
