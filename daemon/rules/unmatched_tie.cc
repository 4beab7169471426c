// SPDX-License-Identifier: Apache-2.0
// JudgeUnmatchedTie(): a rank waits in a send or receive, and its peer has gone on to another call
// without the other end. One of both has left out a call, and nothing shows which. A cycle in which
// both sides are alike, such as two ranks that send first, lacks no call.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "daemon/model/progress.h"
#include "daemon/rules/p2p_pairs.h"
#include "daemon/rules/rules.h"
#include "daemon/words/evidence.h"
#include "daemon/words/sentences.h"

namespace rollcall {
namespace {

constexpr size_t kMostTiePairs = 256;
constexpr size_t kNamedWaitedFor = 8;

// The directions of a rank's messages with a peer, those of one group in a fixed order.
struct Directions {
  std::vector<bool> sends;
  bool is_whole = false;
};

Directions DirectionsTowards(const Communicator& comm, int32_t rank, int32_t peer) {
  Directions found;
  const Member* member = FindMember(comm, rank);
  if (member == nullptr) return found;
  size_t group_begin = 0;
  const CallRecord* last = nullptr;
  for (const CallRecord& record : member->records) {
    if (OpKind(record.args.op) != CallKind::kP2p || !Happens(record)) continue;
    if (record.args.peer != peer) continue;
    const bool joins = last != nullptr && record.group != 0 && record.group == last->group &&
                       record.thread == last->thread;
    if (!joins) group_begin = found.sends.size();
    found.sends.push_back(IsSendSide(record.args.op));
    std::sort(found.sends.begin() + static_cast<std::ptrdiff_t>(group_begin), found.sends.end());
    last = &record;
  }
  for (const PeerTraffic& traffic : member->traffic) {
    if (traffic.peer != peer) continue;
    found.is_whole = found.sends.size() == uint64_t{traffic.sends} + traffic.receives;
  }
  return found;
}

// Unless the histories show the difference, two ranks that wait in messages to each other may have
// made the same mistake.
bool AreAlike(const P2pPair& pair) {
  const Communicator& comm = *pair.call->communicator;
  if (comm.counts_messages) {
    return IsSendSide(OpTowards(comm, pair.waiter.rank, pair.absent.rank)) ==
           IsSendSide(OpTowards(comm, pair.absent.rank, pair.waiter.rank));
  }
  const Directions ours = DirectionsTowards(comm, pair.waiter.rank, pair.absent.rank);
  const Directions theirs = DirectionsTowards(comm, pair.absent.rank, pair.waiter.rank);
  return !ours.is_whole || !theirs.is_whole || ours.sends == theirs.sends;
}

bool IsExchange(const StuckCall& call) {
  return call.kind == StuckCall::Kind::kP2p || IsPairCreation(call);
}

bool Lacks(const StuckCall& call, int32_t process) {
  return std::any_of(call.absents.begin(), call.absents.end(),
                     [process](const Absent& absent) { return absent.process == process; });
}

struct Sides {
  P2pPair pair;
  const StuckCall* other = nullptr;  // in which the peer waits
  int worth = 0;                     // how plainly the peer has gone on
};

int Worth(const P2pPair& pair, const StuckCall& other) {
  const bool is_mutual = Lacks(other, pair.waiter.process);
  if (!IsExchange(other)) return is_mutual ? 3 : 2;
  return is_mutual && other.communicator == pair.call->communicator && !AreAlike(pair) ? 1 : 0;
}

// The calls of the cycle in which the peers of the pairs wait, in order, each once.
std::map<int32_t, std::vector<const StuckCall*>> FindWaitsOfPeers(
    const StuckCalls& calls, const std::vector<size_t>& cycle, const std::vector<P2pPair>& pairs) {
  std::map<int32_t, std::vector<const StuckCall*>> waits;  // by process
  for (const P2pPair& pair : pairs) waits.try_emplace(pair.absent.process);
  for (const size_t i : cycle) {
    for (const Waiter& waiter : calls[i]->waiters) {
      const auto at = waits.find(waiter.process);
      if (at == waits.end()) continue;
      if (at->second.empty() || at->second.back() != calls[i]) at->second.push_back(calls[i]);
    }
  }
  return waits;
}

// The pair whose peer has gone on most plainly; of equal ones the one that waits longest.
std::optional<Sides> FindSides(const StuckCalls& calls, const std::vector<size_t>& cycle) {
  const std::vector<P2pPair> pairs = FindPairs(calls, cycle, kMostTiePairs);
  const auto waits = FindWaitsOfPeers(calls, cycle, pairs);
  std::optional<Sides> best;
  for (const P2pPair& pair : pairs) {
    for (const StuckCall* call : waits.at(pair.absent.process)) {
      const int worth = call == pair.call ? 0 : Worth(pair, *call);
      if (worth == 0) continue;
      const bool is_better =
          !best || worth > best->worth ||
          (worth == best->worth && pair.waiter.wait.since_ns < best->pair.waiter.wait.since_ns);
      if (is_better) best = Sides{pair, call, worth};
    }
  }
  return best;
}

// Of this process's waits in the call.
Proof WeakestProof(const StuckCall& call, int32_t process) {
  Proof weakest = Proof::kShown;
  for (const Waiter& w : call.waiters) {
    if (w.process == process) weakest = std::min(weakest, w.wait.proof);
  }
  return weakest;
}

void AddSides(const JobState& job, const Sides& sides, Verdict* verdict) {
  const Waiter& waiter = sides.pair.waiter;
  const Absent& absent = sides.pair.absent;
  const Communicator& comm = *sides.pair.call->communicator;
  verdict->culprits = {
      MakeCulprit(job, waiter.process, waiter.rank, FindMember(comm, waiter.rank)),
      MakeCulprit(job, absent.process, absent.rank, FindMember(comm, absent.rank))};
  WaitEdge ours = MakeEdge(job, *sides.pair.call), theirs = MakeEdge(job, *sides.other);
  const Op op = OpTowards(comm, waiter.rank, absent.rank);
  if (op != Op::kNone) {
    ours.call.op = op;
    ours.call.peer = absent.rank;
  }
  ours.from = {verdict->culprits[0].rank};
  theirs.from = {verdict->culprits[1].rank};
  ours.to = {{theirs.from[0], theirs.from[0]}};
  for (const Absent& other : sides.other->absents) {
    const int32_t rank = PublicRank(job, other.process, other.rank);
    if (theirs.to.size() < kNamedWaitedFor) theirs.to.push_back({rank, rank + (other.ranks - 1)});
  }
  verdict->chain = {ours, theirs};
  TellApart(&verdict->chain);
  for (const WaitEdge& edge : verdict->chain) verdict->evidence.push_back(EdgeInWords(edge));
}

// What the side that waits later waits for: which side is named first is chance.
void AddEvidenceOfOther(const Sides& sides, Verdict* verdict) {
  if (sides.other == sides.pair.call) return;
  const std::vector<std::string>& more = sides.other->evidence;
  verdict->evidence.insert(verdict->evidence.end(), more.begin(), more.end());
}

void AddAllWaiters(const JobState& job, const StuckCalls& calls, const std::vector<size_t>& cycle,
                   Verdict* verdict) {
  std::set<int32_t> known(verdict->waiting_processes.begin(), verdict->waiting_processes.end());
  for (const size_t i : cycle) {
    for (const Waiter& w : calls[i]->waiters) {
      if (!known.insert(w.process).second) continue;
      verdict->waiting_processes.push_back(w.process);
      verdict->waiting_ranks.push_back(PublicRank(job, w.process, w.rank));
    }
  }
}

}  // namespace

std::optional<Verdict> JudgeUnmatchedTie(const JobState& job, const StuckCalls& calls,
                                         const std::vector<size_t>& cycle, int64_t now_ns,
                                         const Limits& limits) {
  const std::optional<Sides> sides = FindSides(calls, cycle);
  if (!sides) return std::nullopt;
  const StuckCall& call = *sides->pair.call;
  auto verdict =
      Describe({job, call, {}, now_ns, limits}, Cause::kUnmatchedP2p, limits.suspect_after_ns);
  if (!verdict) return verdict;
  const Proof proof = std::min(sides->pair.waiter.wait.proof,
                               WeakestProof(*sides->other, sides->pair.absent.process));
  verdict->certainty =
      std::min(proof == Proof::kIndirect ? Certainty::kPossible : Certainty::kLikely,
               sides->pair.absent.at_most);
  if (call.tags_differ || sides->other->tags_differ) verdict->mismatched_fields = {"tag"};
  AddEvidenceOfOther(*sides, &*verdict);
  AddSides(job, *sides, &*verdict);
  AddAllWaiters(job, calls, cycle, &*verdict);
  verdict->missing_evidence.push_back(
      "which of both ranks has left out a call: neither its past nor a majority shows it");
  return verdict;
}

}  // namespace rollcall
