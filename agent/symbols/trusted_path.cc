// SPDX-License-Identifier: Apache-2.0
#include "agent/symbols/trusted_path.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace rollcall {
namespace {

bool IsTrustedUser(uid_t user) { return user == 0 || user == geteuid(); }

bool OthersCanAddTo(const struct stat& folder) {
  return (folder.st_mode & (S_IWGRP | S_IWOTH)) != 0;
}

// In a sticky folder, others can add names and cannot replace those of trusted users.
bool OthersCanReplaceIn(const struct stat& folder) {
  return OthersCanAddTo(folder) && (folder.st_mode & S_ISVTX) == 0;
}

}  // namespace

bool IsTrustedPath(const std::string& path) {
  struct stat folder;
  if (path.empty() || path[0] != '/' || stat("/", &folder) != 0) return false;
  for (size_t slash = 0; slash != std::string::npos;) {
    slash = path.find('/', slash + 1);
    struct stat name;
    if (lstat(path.substr(0, slash).c_str(), &name) != 0) {
      return errno == ENOENT && !OthersCanAddTo(folder);
    }
    if (!IsTrustedUser(name.st_uid) || OthersCanReplaceIn(folder)) return false;
    if (!S_ISDIR(name.st_mode)) return slash == std::string::npos && S_ISREG(name.st_mode);
    folder = name;
  }
  return true;
}

}  // namespace rollcall
