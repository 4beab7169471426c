// SPDX-License-Identifier: Apache-2.0
// OwedBy(): the calls in which others wait for a rank, from the timeline and independent
// of the rules.
#include <algorithm>

#include "faults.h"

namespace rollcall::corpus {
namespace {

size_t Count(const Track& track, bool p2p) {
  return static_cast<size_t>(std::count_if(
      track.calls.begin(), track.calls.end(),
      [&](const CallTimes& call) { return (OpKind(call.args.op) == CallKind::kP2p) == p2p; }));
}

// Number of sends (or receives) that `track` has issued to (or from) `peer`.
size_t CountWith(const Track* track, Op op, int peer) {
  if (track == nullptr) return 0;
  return static_cast<size_t>(std::count_if(
      track->calls.begin(), track->calls.end(),
      [&](const CallTimes& call) { return call.args.op == op && call.args.peer == peer; }));
}

// Without markers a call that the GPU has not started looks like a call that waits.
bool HasUnfinished(const Case& c, const Track& track, CallKind kind) {
  return std::any_of(track.calls.begin(), track.calls.end(), [&](const CallTimes& call) {
    const bool begun = call.started != kNever || !c.sight.markers;
    return OpKind(call.args.op) == kind && begun && call.finished == kNever;
  });
}

void AddOwed(const Case& c, int comm, int rank, const Track* mine, const Track& theirs, int other,
             Owed* owed) {
  if (mine == nullptr || mine->init_entered == kNever) {
    owed->creation = owed->creation || theirs.init_returned == kNever;
    return;
  }
  if (HasUnfinished(c, theirs, CallKind::kCollective) &&
      Count(*mine, false) < Count(theirs, false)) {
    owed->collective = true;
  }
  const int me = c.plan.RankIn(comm, rank);
  const int them = c.plan.RankIn(comm, other);
  if (HasUnfinished(c, theirs, CallKind::kP2p) &&
      (CountWith(&theirs, Op::kSend, me) > CountWith(mine, Op::kRecv, them) ||
       CountWith(&theirs, Op::kRecv, me) > CountWith(mine, Op::kSend, them))) {
    owed->p2p = true;
  }
  if (theirs.destroy_entered != kNever && theirs.destroy_returned == kNever &&
      mine->destroy_entered == kNever && c.plan.HostIndex(rank) == c.plan.HostIndex(other)) {
    owed->teardown = true;
  }
}

}  // namespace

Owed OwedBy(const Case& c, int rank) {
  Owed owed;
  for (size_t comm = 0; comm < c.plan.comms.size(); ++comm) {
    const std::vector<int>& members = c.plan.comms[comm].ranks;
    if (std::find(members.begin(), members.end(), rank) == members.end()) continue;
    const int index = static_cast<int>(comm);
    const Track* mine = c.timeline.ranks[static_cast<size_t>(rank)].OnComm(index);
    for (const int other : members) {
      const Track* theirs = c.timeline.ranks[static_cast<size_t>(other)].OnComm(index);
      if (other == rank || theirs == nullptr) continue;
      AddOwed(c, index, rank, mine, *theirs, other, &owed);
    }
  }
  return owed;
}

}  // namespace rollcall::corpus
