// SPDX-License-Identifier: Apache-2.0
// Which rank a process is, from the environment that its launcher gave it: the environ block of
// another process, read by interpose/environment.h's one table. Malformed text is no rank.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "interpose/environment.h"

namespace rollcall {

struct EnvironmentRank {
  Place place;                // rank -1: none of the variables is there
  int table_row = -1;         // of kRankVariables; a lower one is closer to the process
  const char* variable = "";  // "RANK", "SLURM_PROCID", ...
};

// The value of `name` in a block of NUL-terminated NAME=VALUE strings; a view without data() if it
// is not there.
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
  const auto number = [block](const char* name) {
    return ParsePlaceNumber(std::string(FindInEnviron(block, name)).c_str());
  };
  int row = 0;
  for (const RankVariables& names : kRankVariables) {
    const int rank = number(names.rank);
    if (rank >= 0) {
      return {{rank, number(names.world_size), number(names.local_rank)}, row, names.rank};
    }
    ++row;
  }
  return {};
}

}  // namespace rollcall
