// SPDX-License-Identifier: Apache-2.0
#include "agent/python/python_strings.h"

#include <cstdint>
#include <cstring>

namespace rollcall {
namespace {

constexpr uint32_t kReplacement = 0xfffd;

void AppendUtf8(uint32_t character, std::string* text) {
  // Control characters are replaced too, because the text may go to a terminal.
  if (character < 0x20 || character == 0x7f || character >= 0x110000 ||
      (character >= 0xd800 && character < 0xe000)) {
    character = kReplacement;
  }
  const auto tail = [character](int shift) {
    return static_cast<char>(0x80 | (character >> shift & 0x3f));
  };
  if (character < 0x80) {
    *text += static_cast<char>(character);
  } else if (character < 0x800) {
    *text += {static_cast<char>(0xc0 | character >> 6), tail(0)};
  } else if (character < 0x10000) {
    *text += {static_cast<char>(0xe0 | character >> 12), tail(6), tail(0)};
  } else {
    *text += {static_cast<char>(0xf0 | character >> 18), tail(12), tail(6), tail(0)};
  }
}

}  // namespace

std::string PythonStringToUtf8(const std::string& bytes, size_t bytes_per_character) {
  std::string text;
  for (size_t at = 0; at + bytes_per_character <= bytes.size(); at += bytes_per_character) {
    uint32_t character = 0;
    std::memcpy(&character, &bytes[at], bytes_per_character);  // x86-64, aarch64: little-endian
    AppendUtf8(character, &text);
  }
  return text;
}

}  // namespace rollcall
