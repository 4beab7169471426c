// SPDX-License-Identifier: Apache-2.0
// The files of a report, and the hidden folder in which a report grows until it gets its name.
//
// Errors name the path and the reason: kResourceExhausted is a full disk or quota, kUnavailable
// means that no file descriptor is left, kNotFound that a folder is gone. Only owner and group can
// read what these functions create, whatever the umask.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace rollcall {

// All files of a report; logs.txt is one of `rollcall diagnose`. Who deletes a report deletes
// incident.json last: a folder that is half deleted is still recognized by it.
inline constexpr const char* kReportFiles[] = {"logs.txt", "stacks.txt", "report.txt",
                                               "report.html", "incident.json"};

// An incident.json that is larger is not read: a stranger has put it there.
inline constexpr size_t kMostReportBytes = size_t{256} << 20;

// "cannot <what> <path>: <error in words>".
absl::Status FileError(const std::string& what, const std::string& path, int error);

// Creates the folder with all folders above it.
absl::Status MakeFolder(const std::string& path);

// Creates or replaces a file. Does not wait until it is on the disk: see SyncReport().
absl::Status WriteFile(const std::string& path, const std::string& content);

// Waits until a report is on the disk: its files, their folder and the folder's name. On a busy
// disk this takes seconds.
absl::Status SyncReport(const std::string& folder);

// A folder `<report_dir>/.rollcall-XXXXXX`. Its writer holds a lock on it, which ends with the
// writer's process. Thus a folder without a lock is left over from a process that was killed.
class TemporaryFolder {
 public:
  static absl::StatusOr<std::unique_ptr<TemporaryFolder>> Create(const std::string& report_dir);
  ~TemporaryFolder();  // removes the folder, unless it has another name now
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  // Gives the folder its final name. Returns 0 or errno.
  int Rename(const std::string& path);

 private:
  TemporaryFolder(std::string path, UniqueFd lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}

  const std::string path_;
  const UniqueFd lock_;  // a descriptor of the folder
  bool is_renamed_ = false;
};

// Removes the temporary folders in `report_dir` that writers have left over. Follows no links, and
// removes only the files of a report.
void RemoveLeftovers(const std::string& report_dir);

}  // namespace rollcall
