// SPDX-License-Identifier: Apache-2.0
// What may be the name of a tenant. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace rollcall {

inline constexpr size_t kMaxTenantName = 255;  // bytes

// Printable ASCII without blanks, and without the characters that separate a tenant from other
// names ("team/train", "team:0a1b") or mean all tenants ("*").
inline bool IsTenantName(std::string_view name) {
  const auto may_be = [](char c) { return c > ' ' && c <= '~' && c != '/' && c != ':' && c != '*'; };
  return !name.empty() && name.size() <= kMaxTenantName &&
         std::all_of(name.begin(), name.end(), may_be);
}

}  // namespace rollcall
