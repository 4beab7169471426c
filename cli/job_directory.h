// SPDX-License-Identifier: Apache-2.0
// The folder of one `rollcall run`, for its job's segments alone.
//
// It lies in shared memory (or below $ROLLCALL_DIR) and goes with the run. What a run that was
// killed left behind goes with the next one.
//
// Nothing is removed that no run has made: a folder counts as a run's only if this user owns it and
// its file "run.owner" says so. That file's lock is held while the run lives, in whatever pid
// namespace; a segment's lock is held while its process lives (interpose/segment.h, life_lock).
//
// On a file system that hosts share, locks may be local to each host (NFS with nolock). So what
// bears another boot id than this kernel's is never removed, even of this host before its last
// start: two containers or machines may have one host name.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "agent/processes/unique_fd.h"

namespace rollcall {

class JobDirectory {
 public:
  absl::Status Make();

  // From now on this run's own agent serves the job: a host agent leaves its processes alone.
  absl::Status ServeAlone();

  // Not while a process of the job still writes there: then the next run removes it.
  void Remove();

  const std::string& path() const { return path_; }
  std::string base() const;  // the folder in which those of all runs lie

  // A file whose time the library renews when it is loaded (ROLLCALL_LOADED).
  std::string loaded_file() const { return path_ + "/loaded"; }
  bool loaded() const;

 private:
  std::string path_;  // "" while there is none
  UniqueFd owner_;    // of "run.owner"; holds its lock
  UniqueFd served_;   // of "run.lock", likewise
};

}  // namespace rollcall
