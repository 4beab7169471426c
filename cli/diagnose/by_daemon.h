// SPDX-License-Identifier: Apache-2.0
// Looks at a job through a daemon and the agents of its hosts: `rollcall diagnose JOB
// --daemon=...`.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/link/daemon_channel.h"
#include "rollcall/v1/look.pb.h"

namespace rollcall {

struct DaemonLookFlags {
  DaemonAddress daemon;
  std::string tenant;     // empty means any
  bool is_typed = false;  // --daemon is on the command line, not only in the environment
};

// `apart_ns`: from the first to the last sample of one process. `asks_ras`: the daemon has NCCL's
// RAS asked where that is safe. `tell`: as in LookOptions. An error is for people.
absl::StatusOr<std::vector<v1::HostLook>> LookByDaemon(
    const DaemonLookFlags& flags, const std::string& job, int64_t apart_ns, bool asks_ras,
    const std::function<void(const std::string&)>& tell);

}  // namespace rollcall
