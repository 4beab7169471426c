// SPDX-License-Identifier: Apache-2.0
// The folder of one `rollcall run`, which holds only the segments of its job.
//
// The folder is in shared memory, or below $ROLLCALL_DIR. The run removes its folder at its end.
// The next run removes the folder of a killed run.
//
// A run removes only folders that a run has made, or the ranks of a killed run made again: this
// user must own the folder, and its file "run.owner" must show that it belongs to a run, or there
// is no such file and a segment of a process under this kernel. A run holds the lock of that file
// while it lives, in any pid namespace. A process holds the lock of its segment while it lives
// (life_lock in interpose/segment.h).
//
// On a file system that hosts share, locks may be local to each host (NFS with nolock). So a run
// never removes files with another boot id than this kernel's. These include files that this host
// made before its last boot: two containers or machines may have the same host name.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace rollcall {

// Files of IncidentFile in this folder: its lines, and the markers of those who read them.
inline constexpr char kIncidentFile[] = "incidents.jsonl";
inline constexpr char kLinkerPrefix[] = "linker-";

class JobDirectory {
 public:
  absl::Status Make();

  // Marks the job as served by the agent of this run, while the descriptor is open: it holds the
  // lock of "run.lock". A host agent then leaves the job's processes alone.
  absl::StatusOr<UniqueFd> LockAsServed() const;

  // Removes the folder, unless a process of the job still writes there. Then the next run removes
  // the folder.
  void Remove();

  const std::string& path() const { return path_; }
  std::string base() const;  // the parent folder, which holds the folders of all runs
  // Whether another user has made the usual parent folder, so that this is one with a random name.
  bool taken() const { return taken_; }

  // A file whose time the library updates when a process loads it (ROLLCALL_LOADED).
  std::string loaded_file() const { return path_ + "/loaded"; }
  bool loaded() const;

 private:
  std::string path_;  // "" while there is none
  bool taken_ = false;
  UniqueFd owner_;  // holds the lock of "run.owner"
};

}  // namespace rollcall
