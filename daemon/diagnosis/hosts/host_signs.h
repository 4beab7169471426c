// SPDX-License-Identifier: Apache-2.0
// Which facts about hosts are signs of trouble: what broke, and what differs between the hosts.
//
// Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/diagnosis/hosts/host_fact_rules.h"
#include "daemon/model/job_state.h"

namespace rollcall {

struct HostSign {
  const std::string* host = nullptr;
  const HostFact* fact = nullptr;
  const HostFactRule* rule = nullptr;
  // The job's processes on the host that it concerns (indices into JobState::processes), in order.
  std::vector<int32_t> processes;
  // It names these processes, by pid or GPU. False if it is about the whole host.
  bool names_processes = false;
};

struct HostSigns {
  // The gravest first; signs of one weight in the order of their times.
  std::vector<HostSign> signs;
  int64_t since_ns = 0;  // as below
  // How many hosts have been looked at, by HostFactKind, and in all.
  std::vector<size_t> looked;
  size_t hosts = 0;

  bool HasLooked(HostFactKind kind) const { return looked[static_cast<size_t>(kind)] != 0; }
};

// The signs for a wait that began at `since_ns`. Facts from before it, and messages that are much
// older, do not count. The result refers to `job`.
HostSigns FindHostSigns(const JobState& job, int64_t since_ns);

}  // namespace rollcall
