// SPDX-License-Identifier: Apache-2.0
// Text from jobs, made harmless in HTML.
#pragma once

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include "absl/strings/str_replace.h"

namespace rollcall {

inline std::string EscapeHtml(const std::string& text) {
  return absl::StrReplaceAll(
      text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}});
}

// Percent-encoded, for one part of an address.
inline std::string EscapeUrl(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(byte) || c == '-' || c == '_' || c == '.' || c == '~') {
      out += c;
    } else {
      absl::StrAppend(&out, "%", absl::Hex(byte, absl::kZeroPad2));
    }
  }
  return out;
}

}  // namespace rollcall
