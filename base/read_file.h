// SPDX-License-Identifier: Apache-2.0
// Reads a file as a whole. The caller gives the limit, and words the error itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace rollcall {

inline constexpr size_t kNoLimit = SIZE_MAX;

// Reads from `fd` to the end, but at most `most` bytes: one byte more than is allowed shows that a
// file is too large. nullopt after an error: see errno.
std::optional<std::string> ReadUpTo(int fd, size_t most);

// Reads the file at `path` in the same way. Follows links and waits for the writer of a pipe, so it
// is for files that this process's user named or that no other user can replace. For others, open
// the file with O_NOFOLLOW and O_NONBLOCK, look what it is, and call ReadUpTo().
std::optional<std::string> ReadFile(const std::string& path, size_t most = kNoLimit);

// The target of a symbolic link as it stands there; empty if it cannot be read, or is not a link.
std::string ReadLink(const std::string& path);

}  // namespace rollcall
