// SPDX-License-Identifier: Apache-2.0
// Which rank or link holds a collective up, in words.
#pragma once

#include <cstdint>
#include <string>

#include "daemon/model/verdict.h"

namespace rollcall {

// Returns the name that incident.json has; empty means kNone. The words are those of
// proto/network_faults.def.
const char* NetworkFaultName(NetworkFault fault);

// "its GPU does not produce what it must send to rank 4". `fault`: as in incident.json; of an
// unknown one, the word itself.
std::string NetworkLine(const std::string& fault, const std::string& peer);

// Whether the network states name the culprits of the verdict: one rank or, where one of its GPUs
// is at fault, the ranks of a host.
bool IsNamedByNetwork(const Verdict& verdict);

// "rank 3 (node-1, pid 1334) does not send to rank 4 on channel 0: its GPU has not produced the
// data (AllReduce #6 on communicator "dp"); 7 ranks have waited 31 s". Of such a verdict only.
std::string NetworkSentence(const Verdict& verdict);

// "rank 3 (node-1, device 0) waits for its own GPU to send to rank 4 (node-2, device 1) on channel
// 0 for 29 s, and for no other rank". `culprit` and `peer` in words; 0 ns: not known.
std::string NetworkEvidence(const NetworkWalk& walk, const std::string& culprit,
                            const std::string& peer, int64_t waited_ns);

}  // namespace rollcall
