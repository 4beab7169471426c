// SPDX-License-Identifier: Apache-2.0
// Reads UTF-8. Typed words are refused where they are not UTF-8: what
// CleanText() leaves of them would mean something else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rollcall {

// Whether the byte is one of a character, but not its first.
inline bool IsUtf8Tail(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

struct Utf8Character {
  uint32_t code = 0;
  size_t length = 0;  // in bytes; 0 if not a valid UTF-8 sequence
};

// Decodes the character at text[i].
inline Utf8Character Utf8At(std::string_view text, size_t i) {
  const auto byte = [&](size_t k) { return static_cast<unsigned char>(text[k]); };
  const unsigned char first = byte(i);
  if (first < 0x80) return {first, 1};
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || i + length > text.size()) return {};
  uint32_t code = first & (0xffu >> (length + 1));
  for (size_t k = 1; k < length; ++k) {
    if (!IsUtf8Tail(text[i + k])) return {};
    code = code << 6 | (byte(i + k) & 0x3fu);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};  // smaller codes are overlong forms
  const bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < kLeast[length] || is_surrogate || code > 0x10ffff) return {};
  return {code, length};
}

inline bool IsUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t length = Utf8At(text, i).length;
    if (length == 0) return false;
    i += length;
  }
  return true;
}

}  // namespace rollcall
