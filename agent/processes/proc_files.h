// SPDX-License-Identifier: Apache-2.0
// Reads the text files of /proc, with a limit on their size.
//
// Every reader of /proc in the agent takes a root ("/proc", or a recorded tree in tests) and uses
// these functions. A file that is missing, unreadable or removed during the read is an error.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace rollcall {

inline constexpr size_t kProcFileLimit = 1 << 20;

// Reads at most `limit` bytes. Errors: kNotFound, kPermissionDenied, kUnavailable.
absl::StatusOr<std::string> ReadProcFile(const std::string& path, size_t limit = kProcFileLimit);

std::string ProcPath(const std::string& proc_root, pid_t pid, const std::string& file);

// Lists the numeric entries of a directory, ascending: pids in /proc, tids in /proc/PID/task.
// Errors as for ReadProcFile().
absl::StatusOr<std::vector<pid_t>> ListNumbers(const std::string& directory);

// The same with the inode number of each entry, which is another one for a later process with the
// same pid.
absl::StatusOr<std::map<pid_t, uint64_t>> ListNumbersWithInodes(const std::string& directory);

}  // namespace rollcall
