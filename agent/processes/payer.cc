// SPDX-License-Identifier: Apache-2.0
#include "agent/processes/payer.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/processes/container_id.h"
#include "agent/processes/pidfd.h"
#include "agent/processes/proc_files.h"
#include "agent/processes/spare_threads.h"
#include "agent/processes/subordinate_ids.h"
#include "base/unique_fd.h"

namespace rollcall {
namespace {

constexpr int kMostNested = 33;  // the kernel allows 32

// The real, effective, saved and file system's user ids as the kernel writes them; empty if
// unknown.
std::string ReadUids(const std::string& proc_root, pid_t pid) {
  const std::string status = ReadProcFile(ProcPath(proc_root, pid, "status")).value_or("");
  for (absl::string_view line : absl::StrSplit(status, '\n')) {
    if (absl::ConsumePrefix(&line, "Uid:\t")) return std::string(line);
  }
  return "";
}

// Returns 0 if it is unknown.
uint64_t InodeAt(const std::string& path) {
  struct stat about;
  return stat(path.c_str(), &about) == 0 ? about.st_ino : 0;
}

uint64_t InodeOf(int fd) {
  struct stat about;
  return fstat(fd, &about) == 0 ? about.st_ino : 0;
}

// Does not block. Not valid: see PidfdUserNamespace().
UniqueFd NamespaceByHandle(const std::string& proc_root, pid_t pid, UniqueFd (*find)(int pidfd)) {
  if (proc_root != "/proc") return UniqueFd();  // another tree's process has another number
  const UniqueFd handle(OpenPidfd(pid).value_or(-1));
  return handle.valid() ? find(handle.get()) : UniqueFd();
}

// May block. Not valid if the process has none, or if the kernel refuses it.
UniqueFd NamespaceByLink(const std::string& proc_root, pid_t pid, const char* file) {
  return UniqueFd(open(ProcPath(proc_root, pid, file).c_str(), O_RDONLY | O_CLOEXEC));
}

// What `find` finds in a `link` in /proc/PID, which may block. `payer`: who has these threads if
// they block.
template <typename Value>
Value ByLinkInTime(pid_t pid, const char* link, int64_t payer, std::function<Value()> find) {
  constexpr int64_t kTimeoutNs = 20'000'000;
  static auto* threads = new SpareThreads;
  return threads->Get<Value>(absl::StrCat(pid, "/", link), std::move(find), kTimeoutNs, payer)
      .value_or(Value());
}

// Does not block.
uint64_t ContainerByGroups(const std::string& proc_root, pid_t pid) {
  constexpr size_t kDigits = 8;  // as many as PayerOfReads() has room for
  const std::string groups = ReadProcFile(ProcPath(proc_root, pid, "cgroup")).value_or("");
  uint64_t number = 0;
  const std::string id = ContainerOfTheHost(groups).substr(0, kDigits);
  return absl::SimpleHexAtoi(id, &number) ? number : 0;
}

std::optional<Payer> MakerOf(const UniqueFd& user_namespace, const std::string& proc_root,
                             pid_t pid) {
  uid_t user = 0;
  if (ioctl(user_namespace.get(), NS_GET_OWNER_UID, &user) != 0) return std::nullopt;
  if (user != 0) return Payer{user, 0};
  const uint64_t container = ContainerByGroups(proc_root, pid);
  return Payer{0, container != 0 ? container : InodeOf(user_namespace.get())};
}

// May block before Linux 6.11. Not valid if it has none, or if the kernel refuses it.
UniqueFd OpenUserNamespace(const std::string& proc_root, pid_t pid) {
  UniqueFd found = NamespaceByHandle(proc_root, pid, PidfdUserNamespace);
  return found.valid() ? std::move(found) : NamespaceByLink(proc_root, pid, "ns/user");
}

// `at`: the user namespace of the process.
std::optional<Payer> FindMaker(UniqueFd at, const std::string& proc_root, pid_t pid) {
  static const uint64_t own = InodeAt("/proc/self/ns/user");
  if (own == 0 || !at.valid() || InodeOf(at.get()) == own) return std::nullopt;
  for (int depth = 0; at.valid() && depth < kMostNested; ++depth) {
    UniqueFd above(ioctl(at.get(), NS_GET_PARENT));
    if (above.valid() && InodeOf(above.get()) == own) return MakerOf(at, proc_root, pid);
    at = std::move(above);
  }
  return std::nullopt;
}

// The inode, if that is another namespace than this program's; else 0.
uint64_t OtherPidNamespace(const UniqueFd& pid_namespace) {
  static const uint64_t own = InodeAt("/proc/self/ns/pid");
  const uint64_t inode = pid_namespace.valid() ? InodeOf(pid_namespace.get()) : 0;
  return inode == own ? 0 : inode;
}

// Answers at once for a process in this program's own user namespace.
uint64_t ContainerInTime(const std::string& proc_root, pid_t pid, uint32_t user) {
  if (user != 0) return 0;
  const uint64_t container = ContainerByGroups(proc_root, pid);
  if (container != 0) return container;
  const UniqueFd found = NamespaceByHandle(proc_root, pid, PidfdPidNamespace);
  if (found.valid()) return OtherPidNamespace(found);
  return ByLinkInTime<uint64_t>(pid, "ns/pid", user, [proc_root, pid] {
    return OtherPidNamespace(NamespaceByLink(proc_root, pid, "ns/pid"));
  });
}

const std::string& OwnMap() {
  static const auto* own = new std::string(ReadProcFile("/proc/self/uid_map").value_or(""));
  return *own;
}

// The first id of the host in such a map; nullopt if it is empty.
std::optional<uint32_t> FirstOfMap(absl::string_view map) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(map, absl::ByAnyChar(" \n"), absl::SkipWhitespace());
  uint32_t id = 0;
  return words.size() > 1 && absl::SimpleAtoi(words[1], &id) ? std::optional<uint32_t>(id)
                                                             : std::nullopt;
}

// Returns the maker of the process's user namespace, at once. `map`: of its ids, as this program
// sees it.
Payer MakerInTime(const std::string& proc_root, pid_t pid, const std::string& map, uid_t owner) {
  const int64_t by_ids = PayerOfFiles(FirstOfMap(map).value_or(owner));
  UniqueFd found = NamespaceByHandle(proc_root, pid, PidfdUserNamespace);
  const bool is_found = found.valid();
  std::optional<Payer> maker = FindMaker(std::move(found), proc_root, pid);
  if (!is_found) {
    maker = ByLinkInTime<std::optional<Payer>>(pid, "ns/user", by_ids, [proc_root, pid] {
      return FindMaker(NamespaceByLink(proc_root, pid, "ns/user"), proc_root, pid);
    });
  }
  return maker.value_or(Payer{static_cast<uint32_t>(by_ids), 0});
}

int64_t NumberOf(const Payer& payer) {
  constexpr int kAboveUsers = 31;  // numbers of containers have 32 bits
  return static_cast<int64_t>(payer.container << kAboveUsers) | payer.user;
}

}  // namespace

std::optional<Payer> MakerOfUserNamespace(const std::string& proc_root, pid_t pid) {
  return FindMaker(OpenUserNamespace(proc_root, pid), proc_root, pid);
}

Payer ReadPayer(const std::string& proc_root, pid_t pid) {
  if (const auto maker = MakerOfUserNamespace(proc_root, pid)) return *maker;
  Payer payer;
  const std::string uids = ReadUids(proc_root, pid);
  uint32_t uid = 0;
  if (absl::SimpleAtoi(uids.substr(0, uids.find('\t')), &uid)) {
    payer.user = static_cast<uint32_t>(PayerOfFiles(uid));
  }
  payer.container = ContainerInTime(proc_root, pid, payer.user);
  return payer;
}

bool HaveSameUser(const std::string& proc_root, pid_t one, pid_t other) {
  const std::string uids = ReadUids(proc_root, one);
  if (uids.empty() || uids != ReadUids(proc_root, other)) return false;
  const uint64_t space = InodeOf(OpenUserNamespace(proc_root, one).get());
  if (space == 0 || space != InodeOf(OpenUserNamespace(proc_root, other).get())) return false;
  const Payer a = ReadPayer(proc_root, one), b = ReadPayer(proc_root, other);
  return !(a < b) && !(b < a);
}

int64_t PayerOfReads(const std::string& proc_root, pid_t pid) {
  struct stat about;
  if (stat(ProcPath(proc_root, pid, "").c_str(), &about) != 0) return -1;
  // The maker of a namespace may map own ids only, so no other namespace has the map of this
  // program's. An ended process has no map.
  const absl::StatusOr<std::string> map = ReadProcFile(ProcPath(proc_root, pid, "uid_map"));
  if (map.ok() && *map != OwnMap()) {
    return NumberOf(MakerInTime(proc_root, pid, *map, about.st_uid));
  }
  return NumberOf({about.st_uid, ContainerInTime(proc_root, pid, about.st_uid)});
}

int64_t PayerOfFiles(uid_t owner) {
  return FirstOfItsBlock(ReadProcFile("/etc/subuid").value_or(""), owner);
}

std::string PayerInWords(int64_t payer) {
  return payer > int64_t{UINT32_MAX} ? "root of a container" : absl::StrCat("user ", payer);
}

}  // namespace rollcall
