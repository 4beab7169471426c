// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/rules/freshness.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/model/progress.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

constexpr size_t kMostHosts = 3;  // that a sentence names

bool IsKnownAbsent(const Absent& absent) {
  return !absent.stale && !absent.silent && absent.lack != Lack::kUnheard;
}

template <typename Predicate>
bool AnyAgent(const JobState& job, Predicate is_meant) {
  return std::any_of(job.agents.begin(), job.agents.end(), is_meant);
}

bool IsNew(const AgentState& agent) { return !agent.is_settled; }
bool IsMissed(const AgentState& agent) { return agent.stale || agent.silent; }

bool SpeaksNew(const JobState& job, int32_t process) {
  const AgentState* agent = FindAgent(job, process);
  return agent != nullptr && IsNew(*agent);
}

bool RestsOnTheNew(const JobState& job, const Verdict& verdict) {
  if (!AnyAgent(job, IsNew)) return false;
  const auto& waiting = verdict.waiting_processes;
  return std::any_of(verdict.culprits.begin(), verdict.culprits.end(),
                     [&](const Culprit& c) { return SpeaksNew(job, c.process); }) ||
         std::any_of(waiting.begin(), waiting.end(),
                     [&](int32_t process) { return SpeaksNew(job, process); });
}

// The agents of processes that live, for all that is known; nullptr is not among them.
class Concerned {
 public:
  Concerned(const JobState& job, const Verdict& verdict) : job_(job) {
    for (const Culprit& culprit : verdict.culprits) Add(culprit.process);
    for (const int32_t process : verdict.waiting_processes) Add(process);
    AddMembers(verdict.communicator);
    std::set<uint64_t> others;
    for (const WaitEdge& edge : verdict.chain) others.insert(edge.communicator);
    for (const uint64_t id : others) {
      if (id != verdict.communicator) AddMembers(id);
    }
    if (verdict.communicator == 0) AddRanks();
  }

  const std::set<const AgentState*>& agents() const { return agents_; }

 private:
  void Add(int32_t process) {
    const AgentState* agent = FindAgent(job_, process);
    if (agent == nullptr || agent == newest_) return;
    if (HowProcessEnded(job_, process) != Gone::kNo) return;
    agents_.insert(agent);
    newest_ = agent;  // ranks of one host stand together
  }

  void AddMembers(uint64_t communicator) {
    const auto comm = job_.communicators.find(communicator);
    if (comm == job_.communicators.end()) return;
    for (const auto& [rank, member] : comm->second.members) Add(member.process);
  }

  void AddRanks() {
    for (size_t i = 0; i < job_.processes.size(); ++i) {
      if (job_.processes[i].global_rank >= 0) Add(static_cast<int32_t>(i));
    }
  }

  const JobState& job_;
  std::set<const AgentState*> agents_;
  const AgentState* newest_ = nullptr;
};

std::string HostsInWords(const std::set<std::string>& hosts) {
  const size_t more = hosts.size() - std::min(hosts.size(), kMostHosts);
  const auto end = std::next(hosts.begin(), static_cast<long>(hosts.size() - more));
  const std::string named = absl::StrJoin(hosts.begin(), end, ", ");
  return more == 0 ? named : absl::StrCat(named, " and ", more, more == 1 ? " host" : " hosts",
                                          " more");
}

void WeighMissed(const JobState& job, int64_t now_ns, Verdict* verdict) {
  std::set<std::string> stale, silent;
  const Concerned concerned(job, *verdict);
  for (const AgentState* agent : concerned.agents()) {
    if (agent->silent) {
      silent.insert(agent->host);
      continue;
    }
    verdict->evidence_age_ns = std::max(verdict->evidence_age_ns, now_ns - agent->heard_ns);
    if (agent->stale) stale.insert(agent->host);
  }
  verdict->stale = !stale.empty();
  if (stale.empty() && silent.empty()) return;
  verdict->certainty = std::min(verdict->certainty, Certainty::kLikely);
  if (!stale.empty()) {
    verdict->missing_evidence.push_back(
        absl::StrCat("no report for ", DurationInWords(verdict->evidence_age_ns),
                     " from the agent of ", HostsInWords(stale)));
  }
  if (!silent.empty()) {
    verdict->missing_evidence.push_back(absl::StrCat("the agent of ", HostsInWords(silent),
                                                     " no longer responds: its data is old"));
  }
}

int64_t OldestWordNs(const JobState& job, int64_t now_ns) {
  int64_t age_ns = 0;
  for (const AgentState& agent : job.agents) age_ns = std::max(age_ns, now_ns - agent.heard_ns);
  return age_ns;
}

}  // namespace

std::vector<Absent> Blamable(const std::vector<Absent>& guilty) {
  std::vector<Absent> blamable = guilty;
  if (std::none_of(guilty.begin(), guilty.end(), IsKnownAbsent)) return blamable;
  blamable.erase(std::remove_if(blamable.begin(), blamable.end(),
                                [](const Absent& absent) { return absent.stale; }),
                 blamable.end());
  return blamable;
}

int64_t CountedSince(const JobState& job, const std::vector<Waiter>& waiters) {
  int64_t since_ns = INT64_MAX;
  for (const Waiter& w : waiters) {
    since_ns = std::min(since_ns, std::max(w.wait.since_ns, CountsFrom(job, w.process)));
  }
  return waiters.empty() ? job.counts_from_ns : since_ns;
}

void WeighAge(const JobState& job, int64_t now_ns, Verdict* verdict) {
  verdict->hearsay = RestsOnTheNew(job, *verdict);
  if (IsContradiction(verdict->cause)) return;
  for (const Culprit& culprit : verdict->culprits) {
    verdict->counts_from_ns = std::max(verdict->counts_from_ns, CountsFrom(job, culprit.process));
    if (IsStale(job, culprit.process)) verdict->at_once = false;
  }
  if (AnyAgent(job, IsMissed)) {
    WeighMissed(job, now_ns, verdict);
  } else {
    // Of the whole job: a little more than of those it rests on, and all of it is new.
    verdict->evidence_age_ns = std::max(verdict->evidence_age_ns, OldestWordNs(job, now_ns));
  }
}

}  // namespace rollcall
