// SPDX-License-Identifier: Apache-2.0
// Finds the rank of a process in its environ block, with the table of launcher variables in
// interpose/environment.h. Malformed text is not a rank.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "interpose/environment.h"

namespace rollcall {

// How much of an environ block the agent reads.
inline constexpr size_t kMaxEnvironBytes = 4 << 20;

struct EnvironmentRank {
  Place coordinates;          // rank -1 if none of the variables is set
  int table_row = -1;         // in kRankVariables; a lower row is closer to the process
  const char* variable = "";  // "RANK", "SLURM_PROCID", ...
};

// Returns the value of `name` in a block of NUL-terminated NAME=VALUE strings; a view without
// data(): not set.
inline absl::string_view FindInEnviron(absl::string_view block, absl::string_view name) {
  while (!block.empty()) {
    const size_t end = block.find('\0');
    const absl::string_view entry = block.substr(0, end);
    if (entry.size() > name.size() && entry[name.size()] == '=' &&
        entry.substr(0, name.size()) == name) {
      return entry.substr(name.size() + 1);
    }
    if (end == absl::string_view::npos) break;
    block.remove_prefix(end + 1);
  }
  return {};
}

inline EnvironmentRank FindRankInEnviron(absl::string_view block) {
  std::string value;
  EnvironmentRank found;
  found.coordinates = FindPlace(
      [&](const char* name) {
        value = std::string(FindInEnviron(block, name));
        return value.c_str();
      },
      &found.table_row);
  if (found.table_row >= 0) found.variable = kRankVariables[found.table_row].rank;
  return found;
}

}  // namespace rollcall
