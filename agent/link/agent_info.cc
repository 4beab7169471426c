// SPDX-License-Identifier: Apache-2.0
#include "agent/link/agent_info.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/processes/held_lock.h"
#include "base/open_file.h"

namespace rollcall {
namespace {

constexpr size_t kMaxBytes = 4096;
constexpr int kTries = 10;

std::string NormalizeAddress(absl::string_view address) {
  address = absl::StripAsciiWhitespace(address);
  absl::ConsumePrefix(&address, "dns:///");
  if (!absl::ConsumePrefix(&address, "localhost:")) return std::string(address);
  return absl::StrCat("127.0.0.1:", address);
}

// Whether the lists have a daemon in common: daemons of one list know each other's jobs.
bool HaveOneDaemon(absl::string_view some, absl::string_view others) {
  for (const absl::string_view one : absl::StrSplit(some, ',')) {
    for (const absl::string_view other : absl::StrSplit(others, ',')) {
      if (NormalizeAddress(one) == NormalizeAddress(other)) return true;
    }
  }
  return false;
}

// Whether only root, this user or the directory's owner can have created the file.
bool Trusted(const std::string& directory, const struct stat& file) {
  struct stat about;
  if (!S_ISREG(file.st_mode) || stat(directory.c_str(), &about) != 0) return false;
  if (file.st_uid == 0 || file.st_uid == geteuid()) return true;
  return about.st_uid == file.st_uid && (about.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

std::optional<HostAgent> ReadAgent(const std::string& directory,
                                   const std::string& daemon_address) {
  const UniqueFd fd(open(absl::StrCat(directory, "/", kAgentInfo).c_str(),
                         O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat about;
  if (!fd.valid() || fstat(fd.get(), &about) != 0 || !Trusted(directory, about) ||
      QueryLock(fd.get()) != HeldLock::kHeld) {
    return std::nullopt;
  }
  char text[kMaxBytes];
  const ssize_t count = pread(fd.get(), text, sizeof(text), 0);
  if (count <= 0) return std::nullopt;
  const std::vector<absl::string_view> lines =
      absl::StrSplit(absl::string_view(text, static_cast<size_t>(count)), '\n');
  if (lines.size() < 2) return std::nullopt;
  if (!HaveOneDaemon(lines[0], daemon_address)) return std::nullopt;
  const bool serves = lines[1] == "host" || (lines[1] == "user" && about.st_uid == geteuid());
  if (!serves) return std::nullopt;
  return HostAgent{directory, lines.size() < 3 ? "" : std::string(lines[2])};
}

absl::Status FromErrno(const std::string& path) {
  return absl::UnavailableError(absl::StrCat(path, ": ", strerror(errno)));
}

absl::Status InUseError(const std::string& path) {
  return absl::AlreadyExistsError(absl::StrCat(path, ": another agent serves this host"));
}

// Opens and locks the temporary file. Only the agent that holds this lock may publish. The lock
// stays held after the rename to the final name.
absl::StatusOr<UniqueFd> OpenLocked(const std::string& path) {
  for (int i = 0; i < kTries; ++i) {
    UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
    struct stat about;
    if (!fd.valid() || fstat(fd.get(), &about) != 0) return FromErrno(path);
    if (!S_ISREG(about.st_mode)) {
      return absl::UnavailableError(absl::StrCat(path, ": not a regular file"));
    }
    if (!TakeLock(fd.get())) return InUseError(path);
    // Another agent may have renamed or removed the file before this one got the lock.
    if (IsStillAt(fd.get(), path)) return fd;
  }
  return InUseError(path);
}

// Returns OK if the file is missing or no running agent holds its lock.
absl::Status CheckFree(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid()) return errno == ENOENT ? absl::OkStatus() : FromErrno(path);
  struct stat about;
  if (fstat(fd.get(), &about) != 0) return FromErrno(path);
  if (!S_ISREG(about.st_mode)) {
    return absl::UnavailableError(absl::StrCat(path, ": not a regular file"));
  }
  return QueryLock(fd.get()) == HeldLock::kHeld ? InUseError(path) : absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<AgentInfo>> AgentInfo::Publish(const std::string& directory,
                                                              const std::string& daemon_address,
                                                              ServedProcesses served,
                                                              const std::string& host) {
  const std::string path = absl::StrCat(directory, "/", kAgentInfo);
  const std::string new_path = absl::StrCat(path, ".new");
  mkdir(directory.c_str(), 0755);
  absl::StatusOr<UniqueFd> fd = OpenLocked(new_path);
  if (!fd.ok()) return fd.status();
  absl::Status status = CheckFree(path);
  if (status.ok()) {
    const std::string text = absl::StrCat(
        daemon_address, "\n", served == ServedProcesses::kHost ? "host" : "user", "\n", host, "\n");
    // The runs of other users look for an agent that serves them.
    const mode_t mode = served == ServedProcesses::kHost ? 0644 : 0640;
    const bool done =
        ftruncate(fd->get(), 0) == 0 && fchmod(fd->get(), mode) == 0 &&
        pwrite(fd->get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()) &&
        rename(new_path.c_str(), path.c_str()) == 0;
    if (!done) status = FromErrno(path);
  }
  if (!status.ok()) {
    unlink(new_path.c_str());
    return status;
  }
  return std::unique_ptr<AgentInfo>(new AgentInfo(path, *std::move(fd)));
}

AgentInfo::~AgentInfo() {
  if (IsStillAt(fd_.get(), path_)) unlink(path_.c_str());
}

std::optional<HostAgent> FindHostAgent(const std::string& daemon_address,
                                       const std::vector<std::string>& directories) {
  for (const std::string& directory : directories) {
    std::optional<HostAgent> agent = ReadAgent(directory, daemon_address);
    if (agent.has_value()) return agent;
  }
  return std::nullopt;
}

}  // namespace rollcall
