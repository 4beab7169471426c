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

// How long such a call may be waited for before it is worth a look: so many
// times what is usual for it, within the floor and the ceiling.
int64_t SuspectAfter(const Communicator& comm, const CallArgs& call, const Limits& limits);

// The verdict that `blamed` keep the others waiting; none if `blamed` is empty
// or the wait is shorter than it may be. Without summary and advice.
std::optional<Verdict> Blame(const Suspicion& s, Cause cause, const std::vector<Absent>& blamed);

// What every verdict on a stuck call says: the call, who waits, since when; no
// culprits. None if the wait is shorter than `limit_ns`.
std::optional<Verdict> Describe(const Suspicion& s, Cause cause, int64_t limit_ns);

// Fills in what any verdict says of its communicator.
void SetCommunicator(const Communicator& comm, Verdict* verdict);

// A wait in this call; who waits for whom is for the caller to fill in.
WaitEdge EdgeIn(const StuckCall& call);

// All waits shown: certain. None: the GPUs may as well be busy with other work.
Certainty CertaintyOfWaits(const std::vector<Waiter>& waiters);

}  // namespace rollcall
