// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "daemon/model/progress.h"
#include "daemon/rules/rules.h"
#include "daemon/words/evidence.h"
#include "daemon/words/sentences.h"

namespace rollcall {
namespace {

constexpr size_t kMostEdges = 16;  // of the cycle, in the verdict

struct Party {
  const Communicator* communicator = nullptr;
  int32_t rank = -1;
};

// The waiting side: a process, or one of its devices if it holds several ranks; else the device is
// -1.
using Actor = std::pair<int32_t, int32_t>;
using Parties = std::map<Actor, Party>;

template <typename RankOfCall>  // Waiter, Absent
Actor ActorOf(const JobState& job, const StuckCall& call, const RankOfCall& who) {
  const Process* process = FindProcess(job, who.process);
  if (process == nullptr || !process->holds_several) return {who.process, -1};
  const Member* member = FindMember(*call.communicator, who.rank);
  return {who.process, member == nullptr ? -1 : member->device};
}

// Those of the waiting that the absent rank may be: it is unknown which rank of a process is absent
// from a communicator that it has not joined.
std::set<Actor> FindWaiting(const JobState& job, const std::set<Actor>& waiting,
                            const StuckCall& call, const Absent& absent) {
  const Actor actor = ActorOf(job, call, absent);
  std::set<Actor> found;
  auto it = waiting.lower_bound(actor);
  for (; it != waiting.end() && it->first == actor.first; ++it) {
    if (*it == actor || actor.second == -1) found.insert(*it);
  }
  return found;
}

// Each one waits, and another one waits for it.
Parties FindParties(const JobState& job, const StuckCalls& calls,
                    const std::vector<size_t>& cycle) {
  std::set<Actor> waiting;
  for (const size_t i : cycle) {
    for (const Waiter& w : calls[i]->waiters) waiting.insert(ActorOf(job, *calls[i], w));
  }
  Parties parties;
  for (const size_t i : cycle) {
    for (const Absent& a : calls[i]->absents) {
      for (const Actor& actor : FindWaiting(job, waiting, *calls[i], a)) {
        parties.insert({actor, {calls[i]->communicator, a.rank}});
      }
    }
  }
  return parties;
}

template <typename RankOfCall>
bool IsParty(const JobState& job, const StuckCall& call, const RankOfCall& who,
             const Parties& parties) {
  const Actor actor = ActorOf(job, call, who);
  if (actor.second >= 0) return parties.count(actor) != 0;
  const auto at = parties.lower_bound(actor);
  return at != parties.end() && at->first.first == actor.first;
}

template <typename Members>
std::vector<int32_t> PartiesAmong(const JobState& job, const StuckCall& call,
                                  const Members& members, const Parties& parties) {
  std::vector<int32_t> ranks;
  for (const auto& m : members) {
    if (IsParty(job, call, m, parties)) ranks.push_back(PublicRank(job, m.process, m.rank));
  }
  return ranks;
}

WaitEdge MakeCycleEdge(const JobState& job, const StuckCall& call, const Parties& parties) {
  WaitEdge edge = MakeEdge(job, call);
  edge.from = PartiesAmong(job, call, call.waiters, parties);
  for (const int32_t rank : PartiesAmong(job, call, call.absents, parties)) {
    edge.to.push_back({rank, rank});
  }
  return edge;
}

size_t Earliest(const StuckCalls& calls, const std::vector<size_t>& cycle) {
  return *std::min_element(cycle.begin(), cycle.end(), [&](size_t a, size_t b) {
    return std::make_tuple(calls[a]->since_ns, calls[a]->communicator->id, calls[a]->position) <
           std::make_tuple(calls[b]->since_ns, calls[b]->communicator->id, calls[b]->position);
  });
}

// Whether no rank has issued the other end of a send or receive. If it would never have come, the
// ranks of the cycle are its victims, and no order of calls is wrong.
bool LacksAnEnd(const StuckCall& call) {
  return call.kind == StuckCall::Kind::kP2p &&
         std::any_of(call.absents.begin(), call.absents.end(),
                     [](const Absent& a) { return a.lack == Lack::kNotEntered; });
}

// The certainty of a cycle is that of its least certain edge.
Certainty CycleCertainty(const JobState& job, const StuckCalls& calls,
                         const std::vector<size_t>& cycle, const Parties& parties) {
  Certainty certainty = Certainty::kCertain;
  for (const size_t i : cycle) {
    Proof weakest = Proof::kShown;
    for (const Waiter& w : calls[i]->waiters) {
      if (IsParty(job, *calls[i], w, parties)) weakest = std::min(weakest, w.wait.proof);
    }
    if (weakest == Proof::kInferred || LacksAnEnd(*calls[i])) {
      certainty = std::min(certainty, Certainty::kLikely);
    }
    if (weakest == Proof::kIndirect) certainty = Certainty::kPossible;
    for (const Absent& a : calls[i]->absents) certainty = std::min(certainty, a.at_most);
  }
  return certainty;
}

// The number of ranks inside the call of each. A rank that is alone in its call is more likely
// wrong.
std::map<Actor, size_t> CountCallers(const JobState& job, const StuckCalls& calls,
                                     const std::vector<size_t>& cycle) {
  std::map<Actor, size_t> callers;
  for (const size_t i : cycle) {
    for (const Waiter& w : calls[i]->waiters) {
      size_t& most = callers[ActorOf(job, *calls[i], w)];
      most = std::max(most, calls[i]->waiters.size());
    }
  }
  return callers;
}

void AddCycleMembers(const JobState& job, const Parties& parties,
                     const std::map<Actor, size_t>& callers, Verdict* verdict) {
  std::vector<std::pair<size_t, Culprit>> members;
  for (const auto& [actor, party] : parties) {
    members.emplace_back(
        callers.at(actor),
        MakeCulprit(job, actor.first, party.rank, FindMember(*party.communicator, party.rank)));
  }
  std::stable_sort(members.begin(), members.end(), [](const auto& a, const auto& b) {
    return std::make_pair(a.first, a.second.rank) < std::make_pair(b.first, b.second.rank);
  });
  for (auto& member : members) verdict->culprits.push_back(std::move(member.second));
}

}  // namespace

std::optional<Verdict> JudgeDeadlock(const JobState& job, const StuckCalls& calls,
                                     const std::vector<size_t>& cycle, int64_t now_ns,
                                     const Limits& limits) {
  const Suspicion first{job, *calls[Earliest(calls, cycle)], {}, now_ns, limits};
  std::optional<Verdict> verdict = Describe(first, Cause::kDeadlock, limits.suspect_after_ns);
  if (!verdict) return verdict;
  const Parties parties = FindParties(job, calls, cycle);
  verdict->certainty = CycleCertainty(job, calls, cycle, parties);
  AddCycleMembers(job, parties, CountCallers(job, calls, cycle), &*verdict);
  verdict->evidence.clear();
  bool lacks_an_end = false;
  std::set<int32_t> waiting(verdict->waiting_processes.begin(), verdict->waiting_processes.end());
  for (const size_t i : cycle) {
    if (calls[i]->absents.empty()) continue;
    lacks_an_end = lacks_an_end || LacksAnEnd(*calls[i]);
    if (verdict->chain.size() < kMostEdges) {
      verdict->chain.push_back(MakeCycleEdge(job, *calls[i], parties));
    }
    for (const Waiter& w : calls[i]->waiters) {
      if (!waiting.insert(w.process).second) continue;
      verdict->waiting_processes.push_back(w.process);
      verdict->waiting_ranks.push_back(PublicRank(job, w.process, w.rank));
    }
  }
  TellApart(&verdict->chain);
  for (const WaitEdge& edge : verdict->chain) verdict->evidence.push_back(EdgeInWords(edge));
  if (lacks_an_end) {
    verdict->missing_evidence.push_back(
        "whether the other end of each send and receive would have come: no rank has issued it");
  }
  return verdict;
}

}  // namespace rollcall
