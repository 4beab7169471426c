// SPDX-License-Identifier: Apache-2.0
#include "agent/host_facts/samples.h"

#include "absl/strings/str_cat.h"

namespace rollcall {

std::map<std::string, Growth> GrowthBetween(const Samples& before, const Samples& after) {
  std::map<std::string, Growth> growths;
  for (const auto& [key, value] : after) {
    const auto first = before.find(key);
    if (first == before.end() || value <= first->second) continue;
    const int64_t grown = value - first->second;
    Growth& growth = growths[key.first];
    growth.total += grown;
    absl::StrAppend(&growth.text, growth.text.empty() ? "" : ", ", key.second, " +", grown);
  }
  return growths;
}

}  // namespace rollcall
