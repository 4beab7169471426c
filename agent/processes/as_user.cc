// SPDX-License-Identifier: Apache-2.0
#include "agent/processes/as_user.h"

#include <sys/fsuid.h>

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/processes/proc_files.h"

namespace rollcall {
namespace {

constexpr int kNobodyNew = -1;  // no valid id: setfsuid() then only says the current one

FileUser CurrentFileUser() {
  return {static_cast<uid_t>(setfsuid(static_cast<uid_t>(kNobodyNew))),
          static_cast<gid_t>(setfsgid(static_cast<gid_t>(kNobodyNew)))};
}

// The id of a line such as "Uid:\t1000\t1000\t1000\t1000": real, effective, saved, of files.
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

AsUser::AsUser(FileUser user) : before_(CurrentFileUser()), acts_(true) {
  if (user.uid == before_.uid) return;
  setfsgid(user.gid);
  setfsuid(user.uid);
  const FileUser now = CurrentFileUser();
  acts_ = now.uid == user.uid && now.gid == user.gid;
}

AsUser::~AsUser() {
  setfsuid(before_.uid);
  setfsgid(before_.gid);
}

}  // namespace rollcall
