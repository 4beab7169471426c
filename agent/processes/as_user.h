// SPDX-License-Identifier: Apache-2.0
// For the time of a scope, this thread uses files with the rights of another user: what that user
// may not open, make or remove fails, and what the thread makes belongs to that user. So root can
// work in a folder of a user who replaces names and links in it at any moment.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace rollcall {

struct FileUser {
  uid_t uid = 0;
  gid_t gid = 0;
};

// Returns the user with whose rights the process uses files. nullopt if unknown, or it has several
// users at once (it was started setuid), so that none may act for another.
std::optional<FileUser> ReadFileUser(const std::string& proc_root, pid_t pid);

class AsUser {
 public:
  // Changes nothing if this thread uses files as that user already.
  explicit AsUser(FileUser user);
  ~AsUser();
  AsUser(const AsUser&) = delete;
  AsUser& operator=(const AsUser&) = delete;

  // False if this thread may not act as that user (CAP_SETUID or CAP_SETGID is missing). It must
  // not go on then: it would work with its own rights.
  bool acts() const { return acts_; }

 private:
  const FileUser before_;
  std::vector<gid_t> groups_before_;
  bool has_changed_ = false;
  bool acts_ = true;
};

}  // namespace rollcall
