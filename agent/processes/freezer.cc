// SPDX-License-Identifier: Apache-2.0
#include "agent/processes/freezer.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/processes/proc_files.h"

namespace rollcall {
namespace {

constexpr size_t kMostBytes = 16384;

bool HasFreezer(absl::string_view controllers) {
  const std::vector<absl::string_view> all = absl::StrSplit(controllers, ',');
  return std::find(all.begin(), all.end(), "freezer") != all.end();
}

}  // namespace

std::string FreezerGroup(absl::string_view cgroup_file) {
  for (const absl::string_view line : absl::StrSplit(cgroup_file, '\n')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3 || !HasFreezer(parts[1])) continue;
    const bool is_usable = parts[2] != "/" && !absl::StrContains(parts[2], "..");
    return is_usable ? std::string(parts[2]) : "";
  }
  return "";
}

bool IsFrozenByGroup(const std::string& proc_root, pid_t pid, const std::string& freezer) {
  const auto groups = ReadProcFile(ProcPath(proc_root, pid, "cgroup"), kMostBytes);
  const std::string group = FreezerGroup(groups.value_or(""));
  if (group.empty()) return false;
  const auto state = ReadProcFile(absl::StrCat(freezer, group, "/freezer.state"), kMostBytes);
  return state.ok() && absl::StripAsciiWhitespace(*state) == "FROZEN";
}

}  // namespace rollcall
