// SPDX-License-Identifier: Apache-2.0
// Detects new files in a folder without a list of the folder.
//
// A file that another host creates on a network file system is not detected.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/unique_fd.h"

namespace rollcall {

class FolderWatch {
 public:
  // May block: see spare_threads.h. nullptr if the folder is missing, or the kernel has no more
  // watches for this user.
  static std::unique_ptr<FolderWatch> Open(const std::string& folder);

  enum class News { kNone, kNewFiles, kGone };

  // What has happened since the last call. Never blocks. kGone: the folder was removed or has
  // another name now, or the kernel dropped events; open another watch.
  News Take();

 private:
  explicit FolderWatch(UniqueFd fd) : fd_(std::move(fd)) {}

  const UniqueFd fd_;
};

}  // namespace rollcall
