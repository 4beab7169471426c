// SPDX-License-Identifier: Apache-2.0
#include "agent/processes/as_user.h"

#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/processes/proc_files.h"

namespace rollcall {
namespace {

// No valid id, so the call only returns the current one. A filter of system calls may refuse even
// that.
FileUser CurrentFileUser() {
  const int uid = setfsuid(static_cast<uid_t>(-1)), gid = setfsgid(static_cast<gid_t>(-1));
  return {uid == -1 ? geteuid() : static_cast<uid_t>(uid),
          gid == -1 ? getegid() : static_cast<gid_t>(gid)};
}

// System calls: the functions of the C library change all threads.
bool SetGroups(const std::vector<gid_t>& groups) {
  return syscall(SYS_setgroups, groups.size(), groups.data()) == 0;
}

std::vector<gid_t> CurrentGroups() {
  std::vector<gid_t> groups(static_cast<size_t>(std::max(getgroups(0, nullptr), 0)));
  const int count = getgroups(static_cast<int>(groups.size()), groups.data());
  groups.resize(static_cast<size_t>(std::max(count, 0)));
  return groups;
}

// Returns the id of a line such as "Uid:\t1000\t1000\t1000\t1000": real, effective, saved, of
// files.
std::optional<uint32_t> ReadOnlyId(absl::string_view status, absl::string_view name) {
  for (absl::string_view line : absl::StrSplit(status, '\n')) {
    if (!absl::ConsumePrefix(&line, name)) continue;
    const std::vector<absl::string_view> ids = absl::StrSplit(line, '\t', absl::SkipEmpty());
    uint32_t id = 0;
    if (ids.size() != 4 || !absl::SimpleAtoi(ids[0], &id)) return std::nullopt;
    for (const absl::string_view other : ids) {
      if (other != ids[0]) return std::nullopt;
    }
    return id;
  }
  return std::nullopt;
}

}  // namespace

std::optional<FileUser> ReadFileUser(const std::string& proc_root, pid_t pid) {
  const std::string status = ReadProcFile(ProcPath(proc_root, pid, "status")).value_or("");
  const std::optional<uint32_t> uid = ReadOnlyId(status, "Uid:");
  const std::optional<uint32_t> gid = ReadOnlyId(status, "Gid:");
  if (!uid.has_value() || !gid.has_value()) return std::nullopt;
  return FileUser{*uid, *gid};
}

AsUser::AsUser(FileUser user) : before_(CurrentFileUser()) {
  if (user.uid == before_.uid) return;
  groups_before_ = CurrentGroups();
  has_changed_ = true;
  acts_ = SetGroups({user.gid});
  setfsgid(user.gid);
  setfsuid(user.uid);
  const FileUser now = CurrentFileUser();
  acts_ = acts_ && now.uid == user.uid && now.gid == user.gid;
}

AsUser::~AsUser() {
  if (!has_changed_) return;
  setfsuid(before_.uid);
  setfsgid(before_.gid);
  SetGroups(groups_before_);
}

}  // namespace rollcall
