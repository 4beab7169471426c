// SPDX-License-Identifier: Apache-2.0
// Reports which of a set of processes have ended, and how, without being their parent.
//
// A process is named by pid and start time, so that a reused number is never taken for the one
// that was watched. Where the kernel has no pidfds (or a sandbox forbids them), it reads /proc
// instead: the end is seen as surely, only how it ended may remain unknown. Not thread-safe.
//
// /proc is read on threads that can be spared, since /proc/PID/stat waits while the process stands
// in exec. What does not come back in time says nothing, and is asked again with the next Poll().
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/processes/process_id.h"
#include "agent/processes/spare_threads.h"

namespace rollcall {

struct ProcessEnd {
  ProcessId process;
  std::optional<int> exit_code;  // it exited
  std::optional<int> signal;     // it was killed; neither: the kernel could not say
};

class ProcessWatch {
 public:
  using PidfdOpener = std::function<absl::StatusOr<int>(pid_t)>;

  // `threads`: nullptr where the caller may block.
  explicit ProcessWatch(std::string proc_root = "/proc",
                        std::shared_ptr<SpareThreads> threads = nullptr);
  // For tests: another way of opening pidfds, one that fails as old kernels do.
  ProcessWatch(std::string proc_root, std::shared_ptr<SpareThreads> threads, PidfdOpener opener);
  ~ProcessWatch();
  ProcessWatch(const ProcessWatch&) = delete;
  ProcessWatch& operator=(const ProcessWatch&) = delete;

  // A process that has ended already, or whose number now belongs to another, is added too: the
  // next Poll() says that it has ended. Adding twice is adding once.
  void Add(ProcessId process);
  void Remove(ProcessId process);

  // Those that have ended since the last call, each once; they are no longer watched then.
  std::vector<ProcessEnd> Poll();

 private:
  struct Watched {
    int pidfd = -1;
    bool is_checked = false;  // the pidfd is the process's
    int asked_how = 0;        // times, without an answer
  };

  template <typename Value>
  std::optional<Value> Ask(ProcessId process, std::function<Value()> read) const;
  void Check(ProcessId process, Watched* watched) const;
  bool HasEnded(ProcessId process, const Watched& watched) const;
  std::optional<ProcessEnd> HowEnded(ProcessId process, Watched* watched) const;

  std::string proc_root_;
  std::shared_ptr<SpareThreads> threads_;
  PidfdOpener open_;
  std::map<ProcessId, Watched> watched_;
};

}  // namespace rollcall
