// SPDX-License-Identifier: Apache-2.0
// Writes a file as a whole: a reader sees the old content or the new one, also after a crash.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace rollcall {

// `mode` are the permissions from the first byte on, whatever the umask says.
absl::Status WriteAtomically(const std::string& path, std::string_view content, mode_t mode);

}  // namespace rollcall
