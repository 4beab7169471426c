// SPDX-License-Identifier: Apache-2.0
// Cleans text from jobs, files and the network for logs, terminals, reports and file names. The
// result is valid UTF-8 on one line, without terminal control sequences and without characters that
// change the writing direction.
//
// White space (tab, newline and similar) becomes a space. Other control characters (C0, DEL, C1),
// characters that change the writing direction, and each byte that is not UTF-8 become '?'.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/utf8.h"

namespace rollcall {
namespace clean_text {

inline bool IsWhiteSpace(uint32_t code) {
  return (code >= 0x09 && code <= 0x0d) || code == 0x85 || code == 0x2028 || code == 0x2029;
}

inline bool IsControl(uint32_t code) { return code < 0x20 || (code >= 0x7f && code <= 0x9f); }

// The Bidi_Control characters of Unicode.
inline bool TurnsDirection(uint32_t code) {
  return code == 0x061c || code == 0x200e || code == 0x200f || (code >= 0x202a && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

}  // namespace clean_text

// Whether CleanText() returns the text unchanged.
inline bool IsCleanText(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const Utf8Character c = Utf8At(text, i);
    if (c.length == 0 || clean_text::IsWhiteSpace(c.code) || clean_text::IsControl(c.code) ||
        clean_text::TurnsDirection(c.code)) {
      return false;
    }
    i += c.length;
  }
  return true;
}

inline std::string CleanText(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const Utf8Character c = Utf8At(text, i);
    if (c.length > 0 && clean_text::IsWhiteSpace(c.code)) {
      out += ' ';
    } else if (c.length == 0 || clean_text::IsControl(c.code) ||
               clean_text::TurnsDirection(c.code)) {
      out += '?';
    } else {
      out.append(text.substr(i, c.length));
    }
    i += c.length == 0 ? 1 : c.length;
  }
  return out;
}

// The same for a text of several lines, such as an error with the commands to type next: each line
// is cleaned, and "\n" stays. Clean first, with CleanText(), what a stranger's part of it is:
// otherwise the stranger could add a line.
inline std::string CleanLines(std::string_view text) {
  std::string out;
  for (size_t begin = 0;;) {
    const size_t end = text.find('\n', begin);
    out += CleanText(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return out;
    out += '\n';
    begin = end + 1;
  }
}

}  // namespace rollcall
