// SPDX-License-Identifier: Apache-2.0
// Texts that were cut to the size of a field before a search for secrets.
//
// A part of a secret that no pattern matches may stay then: of an address with a password, the cut
// may have left the password and taken the host that shows that it is one. So these functions take
// away the word in which the cut lies. They put "..." in its place.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace rollcall {

inline constexpr char kCut[] = "...";

// A number that is the same for the same text, for a word that is left out.
inline std::string NumberOf(absl::string_view text) {
  uint64_t number = 0xcbf29ce484222325;  // FNV-1a
  for (const char byte : text) number = (number ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
  return absl::StrCat(" (", absl::Hex(number & 0xffff, absl::kZeroPad4), ")");
}

// Returns a text without the word at its end that was cut, if it has at least `size` bytes. If the
// text is one word, a number stands for it, so that different ones stay different.
inline std::string WithoutCutEnd(std::string text, size_t size) {
  if (text.size() < size) return text;
  const size_t blank = text.find_last_of(" \t\n");
  if (blank == std::string::npos) return kCut + NumberOf(text);
  text.resize(blank + 1);
  return text + kCut;
}

// The same of the name of a thread or a process, of which the kernel keeps 15 bytes. Most programs
// give names that show what the thread is for, and these stay: only a word with a sign that stands
// in front of a password or behind one is taken away.
inline std::string WithoutCutName(std::string name) {
  constexpr size_t kKept = 15;
  if (name.size() != kKept) return name;
  const size_t blank = name.find_last_of(" \t");
  const absl::string_view word = absl::string_view(name).substr(blank + 1);  // npos + 1: all of it
  const size_t colon = word.find(':');
  const bool is_scope = word.substr(std::min(colon, word.size()), 2) == "::";
  const bool has_sign = word.find_first_of("=@") != word.npos || (colon != word.npos && !is_scope);
  return has_sign ? WithoutCutEnd(std::move(name), 0) : name;
}

// The same at the beginning: of a path, whose parts end with a slash, or of words. If it is one
// word, a number stands for it that is the same for the same text.
inline std::string WithoutCutBeginning(const std::string& text, size_t size) {
  if (text.size() < size) return text;
  const size_t end = text.find_first_of(" /");
  return end != std::string::npos ? kCut + text.substr(end) : kCut + NumberOf(text);
}

// How many bytes the line takes that ends the text of an exception: " at train.py:57". 0 if there
// is none.
inline size_t LengthOfSite(absl::string_view text) {
  const size_t at = text.rfind(" at ");
  const size_t colon = text.rfind(".py:");
  if (at == absl::string_view::npos || colon == absl::string_view::npos || colon < at) return 0;
  const absl::string_view line = text.substr(colon + 4);
  const bool is_line = !line.empty() && line.find_first_not_of("0123456789") == line.npos;
  return is_line && text.find('/', at) == text.npos ? text.size() - at : 0;
}

// The same for an exception's text, with a site behind the message that was cut.
inline std::string WithoutCutMessage(const std::string& text, size_t size) {
  if (text.size() < size) return text;
  const size_t end = text.size() - LengthOfSite(text);
  return WithoutCutEnd(text.substr(0, end), 0) + text.substr(end);
}

}  // namespace rollcall
