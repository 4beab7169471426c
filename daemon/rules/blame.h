// SPDX-License-Identifier: Apache-2.0
// Makes a verdict from a stuck call: the common part of the rules.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"
#include "daemon/rules/stuck_call.h"

namespace rollcall {

// The input of a rule: a stuck call and its absent ranks.
struct Suspicion {
  const JobState& job;
  const StuckCall& call;
  std::vector<Absent> absents;  // the absent ranks of the call that no other wait excuses
  int64_t now_ns = 0;
  Limits limits;
};

// The absent ranks for which `is_meant` is true.
template <typename Predicate>
std::vector<Absent> Pick(const Suspicion& s, Predicate is_meant) {
  std::vector<Absent> picked;
  for (const Absent& absent : s.absents) {
    if (is_meant(absent)) picked.push_back(absent);
  }
  return picked;
}

// The length of a wait from which such a call counts as stuck: a multiple of its usual
// length, between the floor and the ceiling.
int64_t SuspectAfter(const Communicator& comm, const CallArgs& call, const Limits& limits);

// The verdict that the others wait for `blamed`, without summary and advice. None if
// `blamed` is empty or the wait is not long enough.
std::optional<Verdict> Blame(const Suspicion& s, Cause cause, const std::vector<Absent>& blamed);

// As Blame(), but without the ranks whose stacks, taken during the wait, show that they wait for
// others outside of recorded calls, such as in torch's store, if one does not.
std::optional<Verdict> BlameNotHeldUp(const Suspicion& s, Cause cause, std::vector<Absent> absents);

// A verdict with the call, the waiting ranks and the time, but without culprits. None if
// the wait is shorter than `limit_ns`.
std::optional<Verdict> Describe(const Suspicion& s, Cause cause, int64_t limit_ns);

// Fills in the communicator of a verdict.
void SetCommunicator(const JobState& job, const Communicator& comm, Verdict* verdict);

// An edge for a wait in this call. The caller fills in `from` and `to`.
WaitEdge MakeEdge(const JobState& job, const StuckCall& call);

// Adds to communicators with one name for people, such as two of all ranks, what distinguishes
// them.
void TellApart(std::vector<WaitEdge>* edges);

// kCertain if all waits are shown, kLikely if some are. kPossible if none is: the GPUs may
// be busy with other work.
Certainty CertaintyOfWaits(const std::vector<Waiter>& waiters);

}  // namespace rollcall
