// SPDX-License-Identifier: Apache-2.0
// Flags like --hang-after=60s, alike in all programs.
#pragma once

#include <cstdint>
#include <string>

namespace rollcall {

// "" when `text` is a time like 60s or 1m30s, of at least 100 ms and at most a year.
std::string CheckDuration(const std::string& text);

// Of a text that CheckDuration() accepts.
int64_t DurationNs(const std::string& text);

}  // namespace rollcall
