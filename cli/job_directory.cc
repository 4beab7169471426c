#include "cli/job_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/proc_evidence.h"

namespace rollcall {
namespace {

namespace fs = std::filesystem;

std::string BaseDirectory() {
  const char* given = getenv("ROLLCALL_DIR");
  if (given != nullptr && *given != '\0') return given;
  return absl::StrCat("/dev/shm/rollcall-", geteuid());
}

uint64_t StartOf(pid_t pid) {
  const auto stat = ReadProcStat("/proc", pid);
  return stat.ok() ? stat->start_ticks : 0;
}

// "run-<pid>-<start time>" of a run that is no more.
bool IsLeftOver(const std::string& name) {
  const std::vector<std::string> parts = absl::StrSplit(name, '-');
  if (parts.size() != 3 || parts[0] != "run") return false;
  const int pid = atoi(parts[1].c_str());
  return pid > 0 && StartOf(pid) != strtoull(parts[2].c_str(), nullptr, 10);
}

// A job that outlives its `rollcall run` still writes there.
bool InUse(const fs::path& directory) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename();
    const int pid = atoi(name.c_str());
    if (absl::EndsWith(name, ".seg") && pid > 0 &&
        StartOf(pid) == strtoull(name.substr(name.find('-') + 1).c_str(), nullptr, 10)) {
      return true;
    }
  }
  return false;
}

void RemoveLeftOvers(const std::string& base) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(base, error)) {
    if (!IsLeftOver(entry.path().filename()) || InUse(entry.path())) continue;
    std::error_code ignored;
    fs::remove_all(entry.path(), ignored);
  }
}

absl::Status Errno(const std::string& what) {
  return absl::UnavailableError(
      absl::StrCat("cannot make ", what, ": ", strerror(errno),
                   "\n  somewhere else?  export ROLLCALL_DIR=/a/folder/of/mine"));
}

// Another run that ends just now may remove the empty base folder under us.
bool MakeBoth(const std::string& base, const std::string& path) {
  for (int i = 0; i < 10; ++i) {
    if (mkdir(base.c_str(), 0700) != 0 && errno != EEXIST) return false;
    if (mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return true;
    if (errno != ENOENT) return false;
  }
  return false;
}

}  // namespace

absl::Status JobDirectory::Make() {
  const std::string base = BaseDirectory();
  RemoveLeftOvers(base);
  const std::string path = absl::StrCat(base, "/run-", getpid(), "-", StartOf(getpid()));
  if (!MakeBoth(base, path)) return Errno(path);
  path_ = path;
  const int fd = open(loaded_file().c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return Errno(loaded_file());
  const timespec long_ago[2] = {{1, 0}, {1, 0}};
  futimens(fd, long_ago);
  close(fd);
  return absl::OkStatus();
}

bool JobDirectory::loaded() const {
  struct stat about;
  return stat(loaded_file().c_str(), &about) == 0 && about.st_mtim.tv_sec > 1;
}

void JobDirectory::Remove() {
  if (path_.empty()) return;
  std::error_code ignored;
  if (!InUse(path_)) fs::remove_all(path_, ignored);
  // The default base folder goes with the last run; one that was given stays.
  if (getenv("ROLLCALL_DIR") == nullptr) rmdir(BaseDirectory().c_str());
  path_.clear();
}

}  // namespace rollcall
