// SPDX-License-Identifier: Apache-2.0
// Reads a file of /proc line by line. A process decides how long its maps are: tens of thousands of
// lines, with paths as long as it likes. So the file costs one buffer of memory, and no more time
// than the caller waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/strings/string_view.h"

namespace rollcall {

// No path by which a file can be opened is longer.
inline constexpr size_t kLongestProcLine = 8192;

// Calls `each` for every line, without its end; a line that is longer than kLongestProcLine is left
// out. False if the file cannot be read, or not to its end before the deadline (MonotonicNs()).
bool ForEachProcLine(const std::string& path, int64_t deadline_ns,
                     const std::function<void(absl::string_view)>& each);

}  // namespace rollcall
