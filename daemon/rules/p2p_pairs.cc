// SPDX-License-Identifier: Apache-2.0
#include "daemon/rules/p2p_pairs.h"

#include <algorithm>
#include <map>
#include <set>

#include "daemon/model/progress.h"
#include "daemon/rules/blame.h"
#include "daemon/rules/members/pair_names.h"
#include "daemon/words/evidence.h"

namespace rollcall {

bool WaitsIn(const StuckCall& call, int32_t process) {
  return std::any_of(call.waiters.begin(), call.waiters.end(),
                     [process](const Waiter& waiter) { return waiter.process == process; });
}

bool IsPairCreation(const StuckCall& call) {
  return call.kind == StuckCall::Kind::kCreation &&
         (OpKind(call.call.op) == CallKind::kP2p || FindPairName(call.communicator->name));
}

Op OpTowards(const Communicator& comm, int32_t rank, int32_t peer) {
  const Member* member = FindMember(comm, rank);
  if (member == nullptr) return Op::kNone;
  const Op counted = AwaitedTowards(comm, rank, peer);
  if (counted != Op::kNone) return counted;
  const uint64_t open = member->p2p_entered - std::min(member->p2p_entered, member->p2p_finished);
  uint64_t after = 0;  // number of sends and receives from this record on
  Op op = Op::kNone;
  for (size_t i = member->records.size(); i-- > 0;) {
    const CallRecord& record = member->records[i];
    if (OpKind(record.args.op) != CallKind::kP2p || !Happens(record)) continue;
    if (member->has_markers ? ++after > open : op != Op::kNone) break;
    if (record.args.peer == peer) op = record.args.op;
  }
  return op;
}

std::vector<P2pPair> FindPairs(const StuckCalls& calls, const std::vector<size_t>& concerned,
                               size_t most) {
  std::map<int32_t, size_t> waits;  // process -> number of calls in which it waits
  for (const size_t i : concerned) {
    for (const Waiter& waiter : calls[i]->waiters) ++waits[waiter.process];
  }
  std::vector<P2pPair> pairs;
  for (const size_t i : concerned) {
    if (calls[i]->kind != StuckCall::Kind::kP2p && !IsPairCreation(*calls[i])) continue;
    for (const Absent& absent : calls[i]->absents) {
      const bool is_there = absent.gone == Gone::kNo && !absent.silent && !absent.stale;
      if (absent.lack != Lack::kNotEntered || !is_there || absent.process < 0 ||
          pairs.size() == most)
        continue;
      const auto found = waits.find(absent.process);
      const size_t here = WaitsIn(*calls[i], absent.process) ? 1 : 0;
      if (found == waits.end() || found->second <= here) continue;
      for (const Waiter& waiter : calls[i]->waiters) {
        if (pairs.size() < most) pairs.push_back({calls[i], waiter, absent});
      }
    }
  }
  return pairs;
}

void AddWaitersOf(const JobState& job, const StuckCalls& calls, const std::vector<size_t>& cycle,
                  Verdict* verdict) {
  std::set<int32_t> known(verdict->waiting_processes.begin(), verdict->waiting_processes.end());
  for (const Culprit& culprit : verdict->culprits) known.insert(culprit.process);
  for (const size_t i : cycle) {
    for (const Waiter& w : calls[i]->waiters) {
      if (!known.insert(w.process).second) continue;
      verdict->waiting_processes.push_back(w.process);
      verdict->waiting_ranks.push_back(PublicRank(job, w.process, w.rank));
    }
  }
}

std::optional<Verdict> BlameWaiter(const JobState& job, const P2pPair& pair, const CallArgs& extra,
                                   const StuckCalls& calls, const std::vector<size_t>& cycle,
                                   int64_t now_ns, const Limits& limits) {
  const Communicator& comm = *pair.call->communicator;
  std::optional<Verdict> verdict =
      Describe({job, *pair.call, {}, now_ns, limits}, Cause::kUnmatchedP2p,
               SuspectAfter(comm, pair.call->call, limits));
  if (!verdict) return verdict;
  verdict->certainty = std::min(CertaintyOfWaits(pair.call->waiters), pair.absent.at_most);
  verdict->divergence = DivergenceKind::kExtra;
  verdict->call = extra;
  const int32_t process = pair.waiter.process, rank = pair.waiter.rank;
  verdict->culprits.push_back(MakeCulprit(job, process, rank, FindMember(comm, rank)));
  verdict->waiting_ranks.clear();
  verdict->waiting_processes.clear();
  AddWaitersOf(job, calls, cycle, &*verdict);
  return verdict;
}

}  // namespace rollcall
