// SPDX-License-Identifier: Apache-2.0
// The end of the file to which a process writes its output.
//
// The file is the process's: a device, a pipe or a file of the kernel is never opened, and nothing
// is written. It is opened with the rights of the process's user, also by root; without the right
// to act as that user, only if that user owns it and may read it. A file server that does not
// answer blocks the reader: see agent/processes/spare_threads.h.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace rollcall {

inline constexpr size_t kLongestLogLine = 400;

struct LogTail {
  std::tuple<uint64_t, uint64_t> file;  // device and inode
  std::string path;                     // as the process sees it; not cleaned
  int64_t changed_ns = 0;               // by the wall clock
  std::string end;                      // from the beginning of a line on
};

// `descriptor`: 1 or 2. nullopt if it writes no regular file, the file is empty or may not be read,
// or the process has several users at once.
std::optional<LogTail> ReadLogTail(const std::string& proc_root, pid_t pid, int descriptor);

// The last lines of the end of a file, without control characters. Of a line that a progress bar
// has written again and again, what is seen on a screen. Cuts long lines: hide secrets before.
std::vector<std::string> LastLines(const std::string& end);

// The end of a file without the rest of a private key of which it lacks the beginning: no pattern
// matches such a rest.
std::string WithoutTornKey(const std::string& end);

}  // namespace rollcall
