// SPDX-License-Identifier: Apache-2.0
// What this host itself shows, gathered beside the samples of its processes: links, disks, memory,
// the kernel's log. By the probes of the agent (agent/host_facts/gather.h), which change nothing;
// each is a process of its own with a deadline.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <vector>

#include "base/result_in_time.h"
#include "rollcall/v1/incident.pb.h"
#include "security/redact.h"

namespace rollcall {

class HostFactsBeside {
 public:
  // Begins. `pids`: of the jobs, on this host.
  HostFactsBeside(const std::vector<pid_t>& pids, const std::shared_ptr<const Redactor>& redactor);

  // nullopt if the probes have not ended by then. Call it once.
  std::optional<v1::HostFacts> Take(SteadyTime deadline) { return facts_.Take(deadline); }

 private:
  ResultInTime<v1::HostFacts> facts_;
};

}  // namespace rollcall
