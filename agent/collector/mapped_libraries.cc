// SPDX-License-Identifier: Apache-2.0
#include "agent/collector/mapped_libraries.h"

#include <set>

#include "agent/collector/job_marks.h"
#include "agent/processes/proc_files.h"
#include "agent/processes/proc_lines.h"
#include "base/durations.h"
#include "base/monotonic_clock.h"

namespace rollcall {
namespace {

constexpr int64_t kMapsTimeoutNs = kSecond / 5;

}  // namespace

std::vector<std::string> ReadLibraries(const std::string& proc_root, pid_t pid) {
  std::set<std::string> libraries;
  const auto look = [&libraries](absl::string_view line) {
    const absl::string_view library = LibraryOf(line);
    if (!library.empty()) libraries.emplace(library);
  };
  static_cast<void>(
      ForEachProcLine(ProcPath(proc_root, pid, "maps"), MonotonicNs() + kMapsTimeoutNs, look));
  return {libraries.begin(), libraries.end()};
}

}  // namespace rollcall
