// SPDX-License-Identifier: Apache-2.0
#include "cli/diagnose/ask_for_dump.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/processes/open_in_root.h"

namespace rollcall {
namespace {

// The job may close its end at any time: then a signal would end this program.
class WithoutBrokenPipe {
 public:
  WithoutBrokenPipe() : before_(signal(SIGPIPE, SIG_IGN)) {}
  ~WithoutBrokenPipe() { signal(SIGPIPE, before_); }
  WithoutBrokenPipe(const WithoutBrokenPipe&) = delete;
  WithoutBrokenPipe& operator=(const WithoutBrokenPipe&) = delete;

 private:
  void (*const before_)(int);
};

}  // namespace

bool AskForDump(const std::string& root, const std::string& pipe, uid_t owner) {
  if (!absl::StartsWith(pipe, "/")) return false;
  const UniqueFd path_only = OpenInRoot(root, pipe, O_PATH | O_NOFOLLOW);
  struct stat about;
  if (!path_only.valid() || fstat(path_only.get(), &about) != 0) return false;
  if (!S_ISFIFO(about.st_mode) || about.st_uid != owner) return false;
  const UniqueFd writer(open(absl::StrCat("/proc/self/fd/", path_only.get()).c_str(),
                             O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  if (!writer.valid()) return false;
  const WithoutBrokenPipe guard;
  return write(writer.get(), "1", 1) == 1;
}

}  // namespace rollcall
