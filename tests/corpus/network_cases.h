// SPDX-License-Identifier: Apache-2.0
// Generated collectives over the network, with a fault or slow and healthy, and the right answer. A
// case depends on nothing but its seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/model/job_state.h"
#include "daemon/model/network_state.h"
#include "daemon/model/verdict.h"

namespace rollcall::corpus {

// Who may be named. -1 means any.
struct RightAnswer {
  NetworkFault fault = NetworkFault::kNone;
  int32_t culprit = -1, peer = -1;
};

struct NetworkCase {
  std::string kind;   // "stalled_kernel"
  std::string shape;  // "ring of 8 x 1 ranks, 4 channels, sockets"
  JobState job;
  Verdict verdict;  // as the rules give it
  std::vector<NetworkSample> samples;
  std::vector<RightAnswer> right;  // empty if no rank is at fault
  bool may_be_silent = false;      // the samples that would show it are missing
};

const std::vector<std::string>& NetworkFaultKinds();
const std::vector<std::string>& HealthyNetworkKinds();

// `kind`: if empty, the seed chooses.
NetworkCase MakeNetworkFault(uint64_t seed, const std::string& kind = "");
NetworkCase MakeHealthyNetwork(uint64_t seed, const std::string& kind = "");

struct NetworkScore {
  bool named = false;
  bool right = false;        // rank and peer, or silence where that is right
  bool fault_right = false;  // what is wrong there, too
  bool certain = false, wrong_certain = false;
};

// `verdict`: after ApplyNetwork().
NetworkScore ScoreNetwork(const NetworkCase& c, const Verdict& verdict);

}  // namespace rollcall::corpus
