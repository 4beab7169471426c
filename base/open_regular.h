// SPDX-License-Identifier: Apache-2.0
// Opens a file in a folder that may belong to another user. Opening a device acts on it (a
// watchdog starts, a tape is rewound), and a pipe, or a file that its owner has leased, blocks who
// opens it. So this looks first, at a descriptor that cannot act, and then opens the very file that
// it looked at.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <optional>
#include <string>

#include "base/unique_fd.h"

namespace rollcall {

// Opens the regular file `name` in the open folder `folder`, or at that path (AT_FDCWD). `flags`
// are O_RDONLY or O_RDWR; O_CLOEXEC and O_NONBLOCK are always set. Follows no link in the last
// place. `status`: what the file is, if not null. Not valid: errno has the reason; EINVAL: no
// regular file.
UniqueFd OpenRegularAt(int folder, const std::string& name, int flags,
                       struct stat* status = nullptr);

// Opens a path in the same way.
UniqueFd OpenRegular(const std::string& path, int flags, struct stat* status = nullptr);

// The same for a file that is open with O_PATH.
UniqueFd ReopenRegular(const UniqueFd& path_only, int flags, struct stat* status = nullptr);

// The content of the regular file at `path`, at most `most` bytes. nullopt after an error: see
// errno.
std::optional<std::string> ReadRegularFile(const std::string& path, size_t most);

}  // namespace rollcall
