// SPDX-License-Identifier: Apache-2.0
// Asks the RAS of one job on this host, once, and only where that is no risk for the job: queries
// to RAS have ended jobs of some releases of NCCL, and of others while a communicator was created.
// So the caller asks after it has seen that the job stands.
//
// Waits for the network for RasLimits::total_ns at most.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/ras/ras_client.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {

enum class RasUse : uint8_t {
  kIfSafe,  // not where RiskOfAskingRas() names a defect, and not while a communicator is created
  kAlways,
  kNever,
};

struct RasQuestion {
  std::string proc_root = "/proc";
  std::vector<pid_t> pids;  // of one job, on this host
  // nullopt means NCCL_RAS_ADDR of the first of them.
  std::optional<std::string> address = std::nullopt;
  // Some rank stands in the creation or the end of a communicator (IsInCommunicatorLife() of
  // daemon/looks/ask_ras.h).
  bool changes_communicators = false;
  RasUse use = RasUse::kIfSafe;
  // How to ask all the same, for people.
  std::string insistence = "--ras=always asks all the same";
  RasLimits limits;
};

// With a text, or with the reason why there is none. The kernel may never let it read /proc of a
// process.
v1::RasAnswer AskRasOfJob(const RasQuestion& question);

// The same in a thread of its own, which is left behind if it does not end in time: see
// base/threads.h.
v1::RasAnswer AskRasInTime(const RasQuestion& question);

// The answer for a job that is not asked because of RasQuestion::changes_communicators.
v1::RasAnswer RefusalWhileCommunicatorsChange(const std::string& insistence);

}  // namespace rollcall
