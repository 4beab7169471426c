// SPDX-License-Identifier: Apache-2.0
#include "agent/link/agent_info.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/link/same_daemon.h"
#include "agent/processes/held_lock.h"
#include "base/open_file.h"
#include "base/open_regular.h"
#include "base/own_folder.h"

namespace rollcall {
namespace {

constexpr size_t kMaxBytes = 4096;
constexpr int kTries = 10;
constexpr char kNewAgentInfo[] = "agent.info.new";

// Whether root alone makes folders beside this one. In /dev/shm everybody can make a folder first.
bool RootMadeFolder(const std::string& directory) {
  struct stat about;
  return stat(absl::StrCat(directory, "/..").c_str(), &about) == 0 && about.st_uid == 0 &&
         (about.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// Whether only root, this user, or the user to whom root gave the directory can have created the
// file.
bool Trusted(const std::string& directory, const struct stat& file) {
  struct stat about;
  if (!S_ISREG(file.st_mode) || stat(directory.c_str(), &about) != 0) return false;
  if (file.st_uid == 0 || file.st_uid == geteuid()) return true;
  return about.st_uid == file.st_uid && (about.st_mode & (S_IWGRP | S_IWOTH)) == 0 &&
         RootMadeFolder(directory);
}

std::optional<HostAgent> ReadAgent(const std::string& directory,
                                   const std::string& daemon_address) {
  struct stat about;
  const UniqueFd fd = OpenRegular(absl::StrCat(directory, "/", kAgentInfo), O_RDONLY, &about);
  if (!fd.valid() || !Trusted(directory, about) || QueryLock(fd.get()) != HeldLock::kHeld) {
    return std::nullopt;
  }
  char text[kMaxBytes];
  const ssize_t count = pread(fd.get(), text, sizeof(text), 0);
  if (count <= 0) return std::nullopt;
  const std::vector<absl::string_view> lines =
      absl::StrSplit(absl::string_view(text, static_cast<size_t>(count)), '\n');
  if (lines.size() < 2) return std::nullopt;
  const bool serves = lines[1] == "host" || (lines[1] == "user" && about.st_uid == geteuid());
  if (!serves) return std::nullopt;
  // Daemons of one list see each other's jobs.
  if (!HaveOneDaemon(std::string(lines[0]), daemon_address, ResolveHost, DescribeOwnHost)) {
    return std::nullopt;
  }
  return HostAgent{directory, lines.size() < 3 ? "" : std::string(lines[2])};
}

absl::Status FromErrno(const std::string& directory) {
  return absl::UnavailableError(absl::StrCat(directory, "/", kAgentInfo, ": ", strerror(errno)));
}

absl::Status InUseError(const std::string& directory) {
  return absl::AlreadyExistsError(
      absl::StrCat(directory, "/", kAgentInfo, ": another agent serves this host"));
}

// Opens and locks the temporary file. Only the agent that holds this lock may publish. The lock
// stays held after the rename to the final name.
absl::StatusOr<UniqueFd> OpenLocked(const UniqueFd& folder, const std::string& directory) {
  for (int i = 0; i < kTries; ++i) {
    UniqueFd fd(openat(folder.get(), kNewAgentInfo,
                       O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
    struct stat about;
    if (!fd.valid() || fstat(fd.get(), &about) != 0) return FromErrno(directory);
    if (!S_ISREG(about.st_mode) || about.st_uid != geteuid() || about.st_nlink > 1) {
      return absl::UnavailableError(
          absl::StrCat(directory, "/", kNewAgentInfo, " is not a file of this agent: remove it"));
    }
    if (!TakeLock(fd.get())) return InUseError(directory);
    // Another agent may have renamed or removed the file before this one got the lock.
    if (IsStillAt(fd.get(), kNewAgentInfo, folder.get())) return fd;
  }
  return InUseError(directory);
}

// Returns OK if the file is missing or no running agent holds its lock.
absl::Status CheckFree(const UniqueFd& folder, const std::string& directory) {
  const UniqueFd fd = OpenRegularAt(folder.get(), kAgentInfo, O_RDONLY);
  if (!fd.valid()) return errno == ENOENT ? absl::OkStatus() : FromErrno(directory);
  return QueryLock(fd.get()) == HeldLock::kHeld ? InUseError(directory) : absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<AgentInfo>> AgentInfo::Publish(const std::string& directory,
                                                              const std::string& daemon_address,
                                                              ServedProcesses served,
                                                              const std::string& host) {
  absl::StatusOr<UniqueFd> folder = OpenOwnFolder(directory, 0755);
  if (!folder.ok()) return folder.status();
  absl::StatusOr<UniqueFd> fd = OpenLocked(*folder, directory);
  if (!fd.ok()) return fd.status();
  absl::Status status = CheckFree(*folder, directory);
  if (status.ok()) {
    const std::string text = absl::StrCat(
        daemon_address, "\n", served == ServedProcesses::kHost ? "host" : "user", "\n", host, "\n");
    // The runs of other users look for an agent that serves them.
    const mode_t mode = served == ServedProcesses::kHost ? 0644 : 0640;
    const bool done =
        ftruncate(fd->get(), 0) == 0 && fchmod(fd->get(), mode) == 0 &&
        pwrite(fd->get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()) &&
        renameat(folder->get(), kNewAgentInfo, folder->get(), kAgentInfo) == 0;
    if (!done) status = FromErrno(directory);
  }
  if (!status.ok()) {
    unlinkat(folder->get(), kNewAgentInfo, 0);
    return status;
  }
  return std::unique_ptr<AgentInfo>(new AgentInfo(*std::move(folder), *std::move(fd)));
}

AgentInfo::~AgentInfo() {
  if (IsStillAt(fd_.get(), kAgentInfo, folder_.get())) unlinkat(folder_.get(), kAgentInfo, 0);
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
