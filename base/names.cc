// SPDX-License-Identifier: Apache-2.0
#include "base/names.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
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

bool IsTenantName(absl::string_view text) { return IsPlainName(text); }

bool IsHostPattern(absl::string_view text) {
  absl::ConsumePrefix(&text, "*.");
  if (!IsPlainName(text)) return false;
  for (const absl::string_view label : absl::StrSplit(text, '.')) {
    if (label.empty()) return false;
  }
  return true;
}

bool MatchesHostPattern(absl::string_view pattern, absl::string_view host) {
  if (!absl::StartsWith(pattern, "*.")) return absl::EqualsIgnoreCase(pattern, host);
  const size_t dot = host.find('.');
  return dot != absl::string_view::npos && dot > 0 &&
         absl::EqualsIgnoreCase(pattern.substr(1), host.substr(dot));
}

}  // namespace rollcall
