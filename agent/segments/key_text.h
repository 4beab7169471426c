// SPDX-License-Identifier: Apache-2.0
// The text of a key of a store, as people read it.
#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "interpose/key_number.h"
#include "security/whole_words.h"

namespace rollcall {

// `text`: of a field for `size` bytes. If it is full, the library has cut the key: the word in
// which the cut lies is taken away, and the key's number stays.
inline std::string KeyText(const std::string& text, size_t size) {
  constexpr size_t kNumberBytes = 1 + kKeyNumberDigits;
  const bool has_number = size > kNumberBytes && text.size() >= size && text[0] == kKeyNumberMark &&
                          text.find_first_not_of("0123456789abcdef", 1) >= kNumberBytes;
  if (!has_number) return WithoutCutBeginning(text, size);
  const std::string end = text.substr(kNumberBytes);
  const size_t word = end.find_first_of(" /");
  return absl::StrCat(kCut, " (", text.substr(1, kKeyNumberDigits), ")",
                      word == std::string::npos ? "" : end.substr(word));
}

}  // namespace rollcall
