// SPDX-License-Identifier: Apache-2.0
#include "security/names.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace rollcall {
namespace {

constexpr size_t kLongestName = 255;

bool IsNameByte(char byte) {
  return absl::ascii_isalnum(static_cast<unsigned char>(byte)) || byte == '.' || byte == '_' ||
         byte == '-';
}

}  // namespace

bool IsPlainName(absl::string_view text) {
  return !text.empty() && text.size() <= kLongestName && text != "." && text != ".." &&
         std::all_of(text.begin(), text.end(), IsNameByte);
}

bool IsHostPattern(absl::string_view text) {
bool IsTenantName(absl::string_view text) { return IsPlainName(text); }

  absl::ConsumePrefix(&text, "*.");
  if (!IsPlainName(text)) return false;
  for (const absl::string_view label : absl::StrSplit(text, '.')) {
    if (label.empty()) return false;
  }
  return true;
}

}  // namespace rollcall
