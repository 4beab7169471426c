// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "daemon/diagnosis/rules/rules.h"
#include "daemon/words/evidence.h"
#include "daemon/words/sentences.h"

namespace rollcall {
namespace {

struct Party {
  const Communicator* communicator = nullptr;
  int32_t rank = -1;
};

// The processes of the cycle: each waits, and another one waits for it.
std::map<int32_t, Party> PartiesOf(const StuckCalls& calls, const std::vector<size_t>& cycle) {
  std::set<int32_t> waiting;
  for (const size_t i : cycle) {
    for (const Waiter& w : calls[i]->waiters) waiting.insert(w.process);
  }
  std::map<int32_t, Party> parties;
  for (const size_t i : cycle) {
    for (const Absent& a : calls[i]->absents) {
      if (waiting.count(a.process) != 0)
        parties.insert({a.process, {calls[i]->communicator, a.rank}});
    }
  }
  return parties;
}

template <typename Members>
std::vector<int32_t> PartiesAmong(const JobState& job, const Members& members,
                                  const std::map<int32_t, Party>& parties) {
  std::vector<int32_t> ranks;
  for (const auto& m : members) {
    if (parties.count(m.process) != 0) ranks.push_back(PublicRank(job, m.process, m.rank));
  }
  return ranks;
}

WaitEdge EdgeOf(const JobState& job, const StuckCall& call,
                const std::map<int32_t, Party>& parties) {
  WaitEdge edge = EdgeIn(call);
  edge.from = PartiesAmong(job, call.waiters, parties);
  edge.to = PartiesAmong(job, call.absents, parties);
  return edge;
}

size_t Earliest(const StuckCalls& calls, const std::vector<size_t>& cycle) {
  return *std::min_element(cycle.begin(), cycle.end(), [&](size_t a, size_t b) {
    return std::make_tuple(calls[a]->since_ns, calls[a]->communicator->id, calls[a]->position) <
           std::make_tuple(calls[b]->since_ns, calls[b]->communicator->id, calls[b]->position);
  });
}

// The certainty of a cycle is that of its least certain edge.
Certainty CertaintyOf(const StuckCalls& calls, const std::vector<size_t>& cycle,
                      const std::map<int32_t, Party>& parties) {
  Certainty certainty = Certainty::kCertain;
  for (const size_t i : cycle) {
    Proof weakest = Proof::kShown;
    for (const Waiter& w : calls[i]->waiters) {
      if (parties.count(w.process) != 0) weakest = std::min(weakest, w.wait.proof);
    }
    if (weakest == Proof::kInferred) certainty = std::min(certainty, Certainty::kLikely);
    if (weakest == Proof::kIndirect) certainty = Certainty::kPossible;
    for (const Absent& a : calls[i]->absents) certainty = std::min(certainty, a.at_most);
  }
  return certainty;
}

// A rank whose call no other rank makes is more likely wrong.
std::map<int32_t, size_t> CompanyOf(const StuckCalls& calls, const std::vector<size_t>& cycle) {
  std::map<int32_t, size_t> company;
  for (const size_t i : cycle) {
    for (const Waiter& w : calls[i]->waiters) {
      company[w.process] = std::max(company[w.process], calls[i]->waiters.size());
    }
  }
  return company;
}

void AddCulprits(const JobState& job, const std::map<int32_t, Party>& parties,
                 std::map<int32_t, size_t> company, Verdict* verdict) {
  for (const auto& [process, party] : parties) {
    verdict->culprits.push_back(
        MakeCulprit(job, process, party.rank, FindMember(*party.communicator, party.rank)));
  }
  std::stable_sort(verdict->culprits.begin(), verdict->culprits.end(),
                   [&](const Culprit& a, const Culprit& b) {
                     return std::make_pair(company[a.process], a.rank) <
                            std::make_pair(company[b.process], b.rank);
                   });
}

}  // namespace

std::optional<Verdict> JudgeDeadlock(const JobState& job, const StuckCalls& calls,
                                     const std::vector<size_t>& cycle, int64_t now_ns,
                                     const Limits& limits) {
  const Suspicion first{job, *calls[Earliest(calls, cycle)], {}, now_ns, limits};
  std::optional<Verdict> verdict = Describe(first, Cause::kDeadlock, limits.suspect_after_ns);
  if (!verdict) return verdict;
  const std::map<int32_t, Party> parties = PartiesOf(calls, cycle);
  verdict->certainty = CertaintyOf(calls, cycle, parties);
  AddCulprits(job, parties, CompanyOf(calls, cycle), &*verdict);
  verdict->evidence.clear();
  std::set<int32_t> waiting(verdict->waiting_processes.begin(), verdict->waiting_processes.end());
  for (const size_t i : cycle) {
    if (calls[i]->absents.empty()) continue;
    WaitEdge edge = EdgeOf(job, *calls[i], parties);
    verdict->evidence.push_back(EdgeInWords(edge));
    verdict->chain.push_back(std::move(edge));
    for (const Waiter& w : calls[i]->waiters) {
      if (!waiting.insert(w.process).second) continue;
      verdict->waiting_processes.push_back(w.process);
      verdict->waiting_ranks.push_back(PublicRank(job, w.process, w.rank));
    }
  }
  return verdict;
}

}  // namespace rollcall
