// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/last_sign.h"

#include <algorithm>

namespace rollcall {
namespace {

int64_t LastOf(const Process& process) {
  int64_t last = std::max(process.ended_ns, process.error_ns);
  for (const BlockedCall& blocked : process.blocked) last = std::max(last, blocked.since_ns);
  return last;
}

int64_t LastOf(const Member& member) {
  int64_t last =
      std::max({member.waiting_since_ns, member.p2p_waiting_since_ns, member.host_blocked_since_ns,
                member.host_waits_since_ns, member.init_entered_ns, member.state_since_ns});
  if (member.records.empty()) return last;
  const CallRecord& newest = member.records.back();
  return std::max({last, newest.entered_ns, newest.returned_ns});
}

}  // namespace

int64_t LastSignNs(const JobState& job) {
  int64_t last = 0;
  for (const Process& process : job.processes) last = std::max(last, LastOf(process));
  for (const auto& [id, comm] : job.communicators) {
    for (const auto& [rank, member] : comm.members) last = std::max(last, LastOf(member));
  }
  return last;
}

}  // namespace rollcall
