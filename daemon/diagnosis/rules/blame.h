// SPDX-License-Identifier: Apache-2.0
// From a stuck call to a verdict: what the rules have in common.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/diagnosis/rules/stuck_call.h"
#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"

namespace rollcall {

// A stuck call as a rule sees it.
struct Suspicion {
  const JobState& job;
  const StuckCall& call;
  std::vector<Absent> absents;  // those of the call that no other wait excuses
  int64_t now_ns = 0;
  Limits limits;
};

// The absents of which `is_meant` is true.
template <typename Predicate>
std::vector<Absent> Pick(const Suspicion& s, Predicate is_meant) {
  std::vector<Absent> picked;
  for (const Absent& absent : s.absents) {
    if (is_meant(absent)) picked.push_back(absent);
  }
  return picked;
}

// The wait from which such a call counts as stuck: a multiple of its usual length,
// within the floor and the ceiling.
int64_t SuspectAfter(const Communicator& comm, const CallArgs& call, const Limits& limits);

// The verdict that the others wait for `blamed`; none if `blamed` is empty
// or the wait is not long enough. Without summary and advice.
std::optional<Verdict> Blame(const Suspicion& s, Cause cause, const std::vector<Absent>& blamed);

// The common part of a verdict on a stuck call: the call, the waiting ranks, the
// beginning; no culprits. None if the wait is shorter than `limit_ns`.
std::optional<Verdict> Describe(const Suspicion& s, Cause cause, int64_t limit_ns);

// Fills in the communicator of a verdict.
void SetCommunicator(const Communicator& comm, Verdict* verdict);

// A wait in this call. The caller fills in `from` and `to`.
WaitEdge EdgeIn(const StuckCall& call);

// All waits shown: certain. None: the GPUs may as well be busy with other work.
Certainty CertaintyOfWaits(const std::vector<Waiter>& waiters);

}  // namespace rollcall
