// SPDX-License-Identifier: Apache-2.0
// The file that a flag names: an ordinary file, a link, or a place such as /dev/stdout.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace rollcall {

// Writes an ordinary file as a whole or not at all, and through a link. Writes to what is not an
// ordinary file as it is, and does not wait for the reader of a FIFO. The error names what failed
// and why.
absl::Status WriteOutputFile(const std::string& path, const std::string& text);

}  // namespace rollcall
