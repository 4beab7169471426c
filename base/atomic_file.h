// SPDX-License-Identifier: Apache-2.0
// Writes a file as a whole: a reader sees the old content or the new one, also after a crash.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace rollcall {

struct FileOwner {
  uid_t user = 0;
  gid_t group = 0;
};

// `mode` are the permissions from the first byte on, whatever the umask. `owner`: nullopt means
// this process's user and group. After an error the file is as it was. Replaces a symbolic link.
absl::Status WriteAtomically(const std::string& path, std::string_view content, mode_t mode,
                             std::optional<FileOwner> owner = std::nullopt);

}  // namespace rollcall
