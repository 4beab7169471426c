// SPDX-License-Identifier: Apache-2.0
#include "base/read_file.h"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/unique_fd.h"

namespace rollcall {

std::optional<std::string> ReadUpTo(int fd, size_t most) {
  std::string content;
  char piece[16384];
  while (content.size() < most) {
    const ssize_t size = read(fd, piece, std::min(sizeof(piece), most - content.size()));
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return std::nullopt;
    if (size == 0) break;
    content.append(piece, static_cast<size_t>(size));
  }
  return content;
}

std::optional<std::string> ReadFile(const std::string& path, size_t most) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return std::nullopt;
  return ReadUpTo(fd.get(), most);
}

std::string ReadLink(const std::string& path) {
  char target[PATH_MAX];
  const ssize_t size = readlink(path.c_str(), target, sizeof(target));
  return std::string(target, size > 0 ? static_cast<size_t>(size) : 0);
}

}  // namespace rollcall
