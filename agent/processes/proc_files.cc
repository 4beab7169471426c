// SPDX-License-Identifier: Apache-2.0
#include "agent/processes/proc_files.h"

#include <dirent.h>
#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/read_file.h"
#include "base/unique_fd.h"

namespace rollcall {
namespace {

absl::Status FromErrno(const std::string& what, int error) {
  const std::string text = absl::StrCat(what, ": ", std::strerror(error));
  if (error == ENOENT || error == ESRCH) return absl::NotFoundError(text);
  if (error == EACCES || error == EPERM) return absl::PermissionDeniedError(text);
  return absl::UnavailableError(text);
}

}  // namespace

absl::StatusOr<std::string> ReadProcFile(const std::string& path, size_t limit) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return FromErrno(path, errno);
  std::optional<std::string> text = ReadUpTo(fd.get(), limit);
  if (!text.has_value()) return FromErrno(path, errno);
  return *std::move(text);
}

std::string ProcPath(const std::string& proc_root, pid_t pid, const std::string& file) {
  return absl::StrCat(proc_root, "/", pid, "/", file);
}

absl::StatusOr<std::vector<pid_t>> ListNumbers(const std::string& directory) {
  const absl::StatusOr<std::map<pid_t, uint64_t>> entries = ListNumbersWithInodes(directory);
  if (!entries.ok()) return entries.status();
  std::vector<pid_t> numbers;
  for (const auto& [number, inode] : *entries) numbers.push_back(number);
  return numbers;
}

absl::StatusOr<std::map<pid_t, uint64_t>> ListNumbersWithInodes(const std::string& directory) {
  DIR* dir = opendir(directory.c_str());
  if (dir == nullptr) return FromErrno(directory, errno);
  std::map<pid_t, uint64_t> entries;
  while (const dirent* entry = readdir(dir)) {
    pid_t number = 0;
    if (absl::SimpleAtoi(entry->d_name, &number) && number > 0) entries[number] = entry->d_ino;
  }
  closedir(dir);
  return entries;
}

}  // namespace rollcall
