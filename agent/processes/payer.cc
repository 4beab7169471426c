// SPDX-License-Identifier: Apache-2.0
#include "agent/processes/payer.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/processes/proc_files.h"
#include "agent/processes/spare_threads.h"
#include "base/unique_fd.h"

namespace rollcall {
namespace {

constexpr int kMostNested = 33;  // the kernel allows 32

// The real, effective, saved and file system's user ids as the kernel writes them; "": not known.
std::string ReadUids(const std::string& proc_root, pid_t pid) {
  const std::string status = ReadProcFile(ProcPath(proc_root, pid, "status")).value_or("");
  for (absl::string_view line : absl::StrSplit(status, '\n')) {
    if (absl::ConsumePrefix(&line, "Uid:\t")) return std::string(line);
  }
  return "";
}

// 0: not known.
uint64_t InodeAt(const std::string& path) {
  struct stat about;
  return stat(path.c_str(), &about) == 0 ? about.st_ino : 0;
}

uint64_t InodeOf(int fd) {
  struct stat about;
  return fstat(fd, &about) == 0 ? about.st_ino : 0;
}

// By its map of user ids, as this program sees it. Who makes a namespace may map own ids only, so
// no other one has the map of this program's. Does not block.
bool IsInOwnUserNamespace(const std::string& proc_root, pid_t pid) {
  static const std::string own = ReadProcFile("/proc/self/uid_map").value_or("");
  const absl::StatusOr<std::string> map = ReadProcFile(ProcPath(proc_root, pid, "uid_map"));
  return !map.ok() || *map == own;  // a process that has ended has none
}

// As MakerOfUserNamespace(), at once; nullopt also if the process blocks who asks.
std::optional<Payer> FindMakerInTime(const std::string& proc_root, pid_t pid) {
  constexpr int64_t kTimeoutNs = 20'000'000;
  constexpr int64_t kAll = 0;  // who blocks these threads blocks those of other namespaces
  static auto* threads = new SpareThreads;
  return threads
      ->Get<std::optional<Payer>>(
          std::to_string(pid), [proc_root, pid] { return MakerOfUserNamespace(proc_root, pid); },
          kTimeoutNs, kAll)
      .value_or(std::nullopt);
}

std::optional<Payer> MakerOf(const UniqueFd& user_namespace) {
  uid_t user = 0;
  if (ioctl(user_namespace.get(), NS_GET_OWNER_UID, &user) != 0) return std::nullopt;
  return Payer{user, user == 0 ? InodeOf(user_namespace.get()) : 0};
}

}  // namespace

std::optional<Payer> MakerOfUserNamespace(const std::string& proc_root, pid_t pid) {
  static const uint64_t own = InodeAt("/proc/self/ns/user");
  const std::string path = ProcPath(proc_root, pid, "ns/user");
  if (own == 0 || InodeAt(path) == own) return std::nullopt;
  UniqueFd at(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  for (int depth = 0; at.valid() && depth < kMostNested; ++depth) {
    UniqueFd above(ioctl(at.get(), NS_GET_PARENT));
    if (above.valid() && InodeOf(above.get()) == own) return MakerOf(at);
    at = std::move(above);
  }
  return std::nullopt;
}

Payer ReadPayer(const std::string& proc_root, pid_t pid) {
  if (const auto maker = MakerOfUserNamespace(proc_root, pid)) return *maker;
  Payer payer;
  const std::string uids = ReadUids(proc_root, pid);
  uint32_t uid = 0;
  if (absl::SimpleAtoi(uids.substr(0, uids.find('\t')), &uid)) payer.user = uid;
  if (payer.user == 0) payer.root_namespace = InodeAt(ProcPath(proc_root, pid, "ns/pid"));
  return payer;
}

bool HaveSameUser(const std::string& proc_root, pid_t one, pid_t other) {
  const std::string uids = ReadUids(proc_root, one);
  if (uids.empty() || uids != ReadUids(proc_root, other)) return false;
  const Payer a = ReadPayer(proc_root, one), b = ReadPayer(proc_root, other);
  return !(a < b) && !(b < a);
}

int64_t PayerOfReads(const std::string& proc_root, pid_t pid) {
  constexpr int kAboveUsers = 31;  // inodes of namespaces are large numbers of 32 bits
  struct stat about;
  if (stat(ProcPath(proc_root, pid, "").c_str(), &about) != 0) return -1;
  if (IsInOwnUserNamespace(proc_root, pid)) return about.st_uid;
  const auto maker = FindMakerInTime(proc_root, pid);
  if (!maker.has_value()) return kUnknownMaker;
  return static_cast<int64_t>(maker->root_namespace << kAboveUsers) | maker->user;
}

}  // namespace rollcall
