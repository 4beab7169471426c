// SPDX-License-Identifier: Apache-2.0
// Flags like --hang-after=60s, the same in all programs.
#pragma once

#include <cstdint>
#include <string>

namespace rollcall {

// Returns "" if `text` is a time like 60s or 1m30s, of at least 100 ms and at most a year. Else
// returns the error.
std::string CheckDuration(const std::string& text);

// `text` must pass CheckDuration().
int64_t DurationNs(const std::string& text);

}  // namespace rollcall
