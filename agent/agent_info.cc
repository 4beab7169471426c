#include "agent/agent_info.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/held_lock.h"

namespace rollcall {
namespace {

constexpr size_t kMaxBytes = 4096;

std::string SamePlace(absl::string_view address) {
  address = absl::StripAsciiWhitespace(address);
  absl::ConsumePrefix(&address, "dns:///");
  if (!absl::ConsumePrefix(&address, "localhost:")) return std::string(address);
  return absl::StrCat("127.0.0.1:", address);
}

// Nobody else could have put it there.
bool Trusted(const std::string& directory, const struct stat& file) {
  struct stat about;
  if (!S_ISREG(file.st_mode) || stat(directory.c_str(), &about) != 0) return false;
  if (file.st_uid == 0 || file.st_uid == geteuid()) return true;
  return about.st_uid == file.st_uid && (about.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool SaysSo(const std::string& directory, const std::string& daemon_address) {
  const UniqueFd fd(open(absl::StrCat(directory, "/", kAgentInfo).c_str(),
                         O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat about;
  if (!fd.valid() || fstat(fd.get(), &about) != 0 || !Trusted(directory, about) ||
      AskLock(fd.get()) != HeldLock::kHeld) {
    return false;
  }
  char text[kMaxBytes];
  const ssize_t count = pread(fd.get(), text, sizeof(text), 0);
  if (count <= 0) return false;
  const std::vector<absl::string_view> lines =
      absl::StrSplit(absl::string_view(text, static_cast<size_t>(count)), '\n');
  if (lines.size() < 2 || SamePlace(lines[0]) != SamePlace(daemon_address)) return false;
  return lines[1] == "host" || (lines[1] == "user" && about.st_uid == geteuid());
}

}  // namespace

absl::StatusOr<std::unique_ptr<AgentInfo>> AgentInfo::Publish(const std::string& directory,
                                                              const std::string& daemon_address,
                                                              ServedProcesses served) {
  const std::string path = absl::StrCat(directory, "/", kAgentInfo);
  const auto failed = [&path] {
    return absl::UnavailableError(absl::StrCat(path, ": ", strerror(errno)));
  };
  mkdir(directory.c_str(), 0755);
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644));
  struct stat about;
  if (!fd.valid() || fstat(fd.get(), &about) != 0) return failed();
  if (!S_ISREG(about.st_mode)) {
    return absl::UnavailableError(absl::StrCat(path, ": not a regular file"));
  }
  if (!TakeLock(fd.get())) {
    return absl::AlreadyExistsError(absl::StrCat(path, ": another agent serves this host"));
  }
  const std::string text =
      absl::StrCat(daemon_address, "\n", served == ServedProcesses::kHost ? "host" : "user", "\n");
  if (ftruncate(fd.get(), 0) != 0 || fchmod(fd.get(), 0644) != 0 ||
      pwrite(fd.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    return failed();
  }
  return std::unique_ptr<AgentInfo>(new AgentInfo(path, std::move(fd)));
}

AgentInfo::~AgentInfo() {
  struct stat own, named;
  const bool still_ours = fstat(fd_.get(), &own) == 0 && lstat(path_.c_str(), &named) == 0 &&
                          own.st_dev == named.st_dev && own.st_ino == named.st_ino;
  if (still_ours) unlink(path_.c_str());
}

std::optional<std::string> FindHostAgent(const std::string& daemon_address,
                                         const std::vector<std::string>& directories) {
  for (const std::string& directory : directories) {
    if (SaysSo(directory, daemon_address)) return directory;
  }
  return std::nullopt;
}

}  // namespace rollcall
