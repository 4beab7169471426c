// SPDX-License-Identifier: Apache-2.0
#include "agent/logs/log_tail.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/processes/as_user.h"
#include "agent/processes/proc_files.h"
#include "base/clean_text.h"
#include "base/cut_text.h"
#include "base/durations.h"
#include "base/open_regular.h"
#include "base/read_file.h"
#include "proto/look_limits.h"

namespace rollcall {
namespace {

constexpr size_t kMostBytes = 32 << 10;

// A link of /proc/PID/fd has the rights with which the process has opened the file.
bool IsOpenForWriting(const std::string& link) {
  struct stat about;
  return lstat(link.c_str(), &about) == 0 && (about.st_mode & S_IWUSR) != 0;
}

bool IsItsOwnersToRead(const UniqueFd& path_only, uid_t uid) {
  struct stat about;
  return fstat(path_only.get(), &about) == 0 && about.st_uid == uid &&
         (about.st_mode & S_IRUSR) != 0;
}

// The file that the descriptor has, whatever lies at its path by now. The process may change the
// descriptor at any moment, so what this process alone may read stays closed: only the rights of
// the process's user count. An agent may read all files and cannot act as that user: it opens what
// that user owns and may read.
UniqueFd OpenAsItsUser(const std::string& link, const FileUser& user, struct stat* about) {
  const UniqueFd path_only(open(link.c_str(), O_PATH | O_CLOEXEC));
  if (!path_only.valid() || !IsOpenForWriting(link)) return UniqueFd();
  {
    const AsUser as_user(user);
    if (as_user.acts()) return ReopenRegular(path_only, O_RDONLY, about);
  }
  return IsItsOwnersToRead(path_only, user.uid) ? ReopenRegular(path_only, O_RDONLY, about)
                                                : UniqueFd();
}

// Reading some files of the kernel takes what they hold, or waits for more.
bool IsOfKernel(int fd) {
  struct statfs about;
  if (fstatfs(fd, &about) != 0) return true;
  const auto type = static_cast<uint64_t>(about.f_type);
  return type == PROC_SUPER_MAGIC || type == SYSFS_MAGIC || type == DEBUGFS_MAGIC ||
         type == TRACEFS_MAGIC || type == CGROUP2_SUPER_MAGIC || type == CGROUP_SUPER_MAGIC;
}

std::string ReadEnd(int fd, off_t size) {
  std::string end(std::min<size_t>(static_cast<size_t>(size), kMostBytes), '\0');
  const ssize_t got = pread(fd, end.data(), end.size(), size - static_cast<off_t>(end.size()));
  end.resize(got > 0 ? static_cast<size_t>(got) : 0);
  // The first line has no beginning where the file is longer. A progress bar ends none, and begins
  // each of its pictures with a carriage return.
  if (end.size() == kMostBytes) {
    end.erase(0, std::min(end.find_first_of("\n\r"), end.size() - 1) + 1);
  }
  return end;
}

}  // namespace

std::vector<std::string> LastLines(const std::string& end) {
  std::vector<std::string> kept;
  for (const absl::string_view line : absl::StrSplit(end, '\n')) {
    const absl::string_view whole = absl::StripSuffix(line, "\r");
    const std::string shown(whole.substr(whole.rfind('\r') + 1));
    if (!shown.empty()) kept.push_back(CutText(CleanText(shown), kLongestLogLine, "..."));
  }
  if (kept.size() > kMostLinesOfLog)
    kept.erase(kept.begin(), kept.end() - static_cast<ptrdiff_t>(kMostLinesOfLog));
  return kept;
}

std::string WithoutTornKey(const std::string& end) {
  const size_t at = end.find("-----END ");
  if (at == std::string::npos || end.find("-----BEGIN ") < at) return end;
  const size_t line_end = std::min(end.find('\n', at), end.size());
  const bool is_key = absl::StrContains(end.substr(at, line_end - at), "PRIVATE KEY");
  return is_key ? end.substr(line_end) : end;
}

std::optional<LogTail> ReadLogTail(const std::string& proc_root, pid_t pid, int descriptor) {
  const std::string link = ProcPath(proc_root, pid, absl::StrCat("fd/", descriptor));
  const std::optional<FileUser> user = ReadFileUser(proc_root, pid);
  if (!user.has_value()) return std::nullopt;
  struct stat about = {};
  const UniqueFd fd = OpenAsItsUser(link, *user, &about);
  if (!fd.valid() || about.st_size <= 0 || IsOfKernel(fd.get())) return std::nullopt;
  LogTail tail;
  tail.file = {about.st_dev, about.st_ino};
  tail.path = ReadLink(link);
  tail.changed_ns = about.st_mtim.tv_sec * kSecond + about.st_mtim.tv_nsec;
  tail.end = ReadEnd(fd.get(), about.st_size);
  if (tail.end.empty()) return std::nullopt;
  return tail;
}

}  // namespace rollcall
