// SPDX-License-Identifier: Apache-2.0
// Runs probes, each in a process of its own with a deadline.
//
// A probe may block in the kernel, where no signal ends it. The runner then sends SIGKILL and
// leaves it: nothing waits for it. Until it has gone, the runner starts no other one with the same
// key, so a driver that hangs holds one process. Probes get a PATH as their only environment, no
// input, and no files of this process.
//
// One thread at a time uses a runner.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "agent/host_facts/fact.h"
#include "base/unique_fd.h"

namespace rollcall {

struct ProbeCommand {
  std::string key;                     // of its kind: "kernel_log", "file_system 0:52"
  std::vector<std::string> arguments;  // the first is the path of the program
};

class ProbeRunner {
 public:
  static constexpr size_t kMostAtOnce = 16;
  static constexpr size_t kMostStuck = 32;

  ~ProbeRunner();

  // The results in the order of the commands. Returns when all have ended, or at the deadline,
  // which counts from the start of each group of kMostAtOnce.
  std::vector<ProbeResult> Run(const std::vector<ProbeCommand>& commands, int64_t deadline_ns);

  // Probes that have been killed and have not ended.
  size_t CountStuck();

 private:
  struct Running;
  void RunGroup(const std::vector<ProbeCommand>& commands, size_t first, size_t end,
                int64_t deadline_ns, std::vector<ProbeResult>* results);
  bool IsStuck(const std::string& key);
  void Abandon(Running* running);

  struct Stuck {
    pid_t pid = 0;
    UniqueFd pidfd;  // invalid if the kernel has none
  };
  std::map<std::string, Stuck> stuck_;  // by key
};

}  // namespace rollcall
