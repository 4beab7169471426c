// SPDX-License-Identifier: Apache-2.0
// Reports which of a set of processes have ended, and how, without being their parent.
//
// The watch identifies a process by pid and start time, so that a process with a reused pid is
// never taken for the watched one. If the kernel has no pidfds (or a sandbox forbids them), the
// watch reads /proc instead. It then detects every end too, but the exit status may remain unknown.
// Not thread-safe.
//
// The watch reads /proc on spare threads, because a read of /proc/PID/stat blocks while the process
// is inside exec(). A read that times out has no result; the next Poll() repeats it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/processes/process_id.h"
#include "agent/processes/spare_threads.h"
#include "base/unique_fd.h"

namespace rollcall {

struct ProcessEnd {
  ProcessId process;
  std::optional<int> exit_code;  // set if the process exited
  std::optional<int> signal;     // set if a signal killed it; neither is set: not known
};

class ProcessWatch {
 public:
  using PidfdOpener = std::function<absl::StatusOr<int>(pid_t)>;

  // `threads`: nullptr if the caller may block.
  explicit ProcessWatch(std::string proc_root = "/proc",
                        std::shared_ptr<SpareThreads> threads = nullptr);
  // For tests: `opener` replaces OpenPidfd(), for instance by one that fails as on old kernels.
  ProcessWatch(std::string proc_root, std::shared_ptr<SpareThreads> threads, PidfdOpener opener);

  // Adds a process, once. It may have ended already, and another process may have its pid: the next
  // Poll() then reports the end.
  void Add(ProcessId process);
  void Remove(ProcessId process);

  // Returns the processes that have ended since the last call, and stops watching them.
  std::vector<ProcessEnd> Poll();

 private:
  struct Watched {
    UniqueFd pidfd;
    bool is_checked = false;  // verified: the pidfd refers to the process
    int end_reads = 0;        // attempts to read the exit status that timed out
  };

  template <typename Value>
  std::optional<Value> ReadInTime(ProcessId process, std::function<Value()> read) const;
  void Check(ProcessId process, Watched* watched) const;
  bool HasEnded(ProcessId process, const Watched& watched, const std::vector<int>& ended) const;
  std::optional<ProcessEnd> FindEnd(ProcessId process, Watched* watched) const;

  std::string proc_root_;
  std::shared_ptr<SpareThreads> threads_;
  PidfdOpener open_;
  std::map<ProcessId, Watched> watched_;
};

}  // namespace rollcall
