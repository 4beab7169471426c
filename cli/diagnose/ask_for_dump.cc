// SPDX-License-Identifier: Apache-2.0
#include "cli/diagnose/ask_for_dump.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/processes/open_in_root.h"

namespace rollcall {

bool AskForDump(const std::string& root, const std::string& pipe, uid_t owner) {
  if (!absl::StartsWith(pipe, "/")) return false;
  const UniqueFd path_only = OpenInRoot(root, pipe, O_PATH | O_NOFOLLOW);
  struct stat about;
  if (!path_only.valid() || fstat(path_only.get(), &about) != 0) return false;
  if (!S_ISFIFO(about.st_mode) || about.st_uid != owner) return false;
  const UniqueFd writer(open(absl::StrCat("/proc/self/fd/", path_only.get()).c_str(),
                             O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  return writer.valid() && write(writer.get(), "1", 1) == 1;
}

}  // namespace rollcall
