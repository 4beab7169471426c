// SPDX-License-Identifier: Apache-2.0
#include "agent/processes/open_in_root.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <vector>

#include "absl/strings/str_split.h"

namespace rollcall {
namespace {

constexpr int kFolder = O_PATH | O_DIRECTORY | O_CLOEXEC;

}  // namespace

UniqueFd OpenInRoot(const std::string& root, const std::string& path, int flags) {
  const UniqueFd top(open(root.c_str(), kFolder));
  if (!top.valid()) return UniqueFd();
  struct open_how how = {};
  how.flags = static_cast<uint64_t>(flags | O_CLOEXEC);
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  const long fd = syscall(SYS_openat2, top.get(), path.c_str(), &how, sizeof(how));
  if (fd >= 0) return UniqueFd(static_cast<int>(fd));
  // EPERM: filters of system calls of some container runtimes do not know openat2.
  if (errno == ENOSYS || errno == EPERM) return OpenWithoutLinks(root, path, flags);
  return UniqueFd();
}

UniqueFd OpenWithoutLinks(const std::string& root, const std::string& path, int flags) {
  const std::vector<std::string> names = absl::StrSplit(path, '/', absl::SkipEmpty());
  UniqueFd folder(open(root.c_str(), kFolder));
  for (size_t i = 0; folder.valid() && i < names.size(); ++i) {
    if (names[i] == "..") {
      errno = ELOOP;
      return UniqueFd();
    }
    const bool is_last = i + 1 == names.size();
    const int how = is_last ? flags | O_CLOEXEC : kFolder;
    folder = UniqueFd(openat(folder.get(), names[i].c_str(), how | O_NOFOLLOW));
  }
  return folder;
}

}  // namespace rollcall
