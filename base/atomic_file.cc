// SPDX-License-Identifier: Apache-2.0
#include "base/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/cannot.h"
#include "base/unique_fd.h"
#include "base/write_all.h"

namespace rollcall {
namespace {

// Otherwise a crash may undo the renaming. The new content is in place whether or not this works,
// so a failure does not concern the caller.
void SyncFolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const UniqueFd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.valid()) fsync(fd.get());
}

bool IsOwn(const FileOwner& owner) { return owner.user == geteuid() && owner.group == getegid(); }

}  // namespace

absl::Status WriteAtomically(const std::string& path, std::string_view content, mode_t mode,
                             std::optional<FileOwner> owner) {
  std::string unfinished = absl::StrCat(path, ".XXXXXX");
  const UniqueFd file(mkostemp(unfinished.data(), O_CLOEXEC));  // 0600
  const int fd = file.get();
  if (fd < 0) return Cannot("write", path);
  absl::Cleanup remove_file = [&unfinished] { unlink(unfinished.c_str()); };
  if (!WriteAll(fd, content) || fsync(fd) != 0) return Cannot("write", path);
  // Before the permissions: a new owner takes some of them away.
  if (owner.has_value() && !IsOwn(*owner) && fchown(fd, owner->user, owner->group) != 0) {
    return Cannot("keep the owner of", path);
  }
  if (fchmod(fd, mode) != 0) return Cannot("set the permissions of", path);
  if (rename(unfinished.c_str(), path.c_str()) != 0) return Cannot("replace", path);
  std::move(remove_file).Cancel();
  SyncFolderOf(path);
  return absl::OkStatus();
}

}  // namespace rollcall
