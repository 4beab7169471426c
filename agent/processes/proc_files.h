// SPDX-License-Identifier: Apache-2.0
// Reading the small text files of /proc, bounded.
//
// Every reader of /proc in the agent takes a root ("/proc", or a recorded tree in tests) and goes
// through here. A file that is missing, unreadable or gone in mid-read is an error value.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace rollcall {

inline constexpr size_t kProcFileLimit = 1 << 20;

// At most `limit` bytes; the rest is not read.
absl::StatusOr<std::string> ReadProcFile(const std::string& path, size_t limit = kProcFileLimit);

std::string ProcPath(const std::string& proc_root, pid_t pid, const std::string& file);

// The entries of a directory that are numbers, ascending: pids of /proc, tids of /proc/PID/task.
absl::StatusOr<std::vector<pid_t>> ListNumbers(const std::string& directory);

}  // namespace rollcall
