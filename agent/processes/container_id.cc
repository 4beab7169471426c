// SPDX-License-Identifier: Apache-2.0
#include "agent/processes/container_id.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace rollcall {
namespace {

constexpr size_t kDigits = 64;
constexpr size_t kKeptDigits = 12;

// Returns the id in the name of one control group.
std::string IdIn(absl::string_view name) {
  const size_t dash = name.rfind('-');
  return ContainerIdAt(dash == absl::string_view::npos ? name : name.substr(dash + 1));
}

bool MayBeGivenAway(absl::string_view name) {
  return absl::EndsWith(name, ".service") || absl::EndsWith(name, ".scope") ||
         absl::StartsWith(name, "lxc");
}

}  // namespace

std::string ContainerIdAt(absl::string_view text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789abcdef"), text.size());
  return digits == kDigits ? std::string(text.substr(0, kKeptDigits)) : "";
}

std::string ContainerInGroups(absl::string_view groups) {
  for (const absl::string_view name : absl::StrSplit(groups, absl::ByAnyChar("/\n"))) {
    std::string id = IdIn(name);
    if (!id.empty()) return id;
  }
  return "";
}

std::string ContainerOfTheHost(absl::string_view groups) {
  for (const absl::string_view path : absl::StrSplit(groups, '\n')) {
    for (const absl::string_view name : absl::StrSplit(path, '/')) {
      std::string id = IdIn(name);
      if (!id.empty()) return id;
      if (MayBeGivenAway(name)) break;
    }
  }
  return "";
}

}  // namespace rollcall
