// SPDX-License-Identifier: Apache-2.0
#include "daemon/rules/freshness.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/durations.h"
#include "daemon/model/progress.h"
#include "daemon/rules/members/heard_hosts.h"
#include "daemon/words/terms.h"

namespace rollcall {

bool RestsOnWait(const Verdict& verdict) {
  return verdict.cause != Cause::kRankDied && verdict.cause != Cause::kRankExited &&
         verdict.cause != Cause::kNcclError && verdict.cause != Cause::kConcurrentUse &&
         !IsWarning(verdict.cause);
}

namespace {

// The ranks of a collective finish it at nearly the same time. Their hosts report this one after
// the other, and the network may delay a report.
constexpr int64_t kFinishReportedWithinNs = 2 * kSecond;
// An agent that has just begun reports the processes of its host as it finds them: on a loaded host
// some of them in a later tick.
constexpr int64_t kAllReportedWithinNs = 10 * kSecond;

bool IsKnownAbsent(const Absent& absent) {
  return !absent.stale && !absent.silent && absent.lack != Lack::kUnheard;
}

template <typename Predicate>
bool AnyAgent(const JobState& job, Predicate is_meant) {
  return std::any_of(job.agents.begin(), job.agents.end(), is_meant);
}

bool IsNew(const AgentState& agent) { return !agent.is_settled; }
bool IsMissed(const AgentState& agent) { return agent.stale || agent.silent; }

bool HasNewAgent(const JobState& job, int32_t process) {
  const AgentState* agent = FindAgent(job, process);
  return agent != nullptr && IsNew(*agent);
}

bool RestsOnNewAgent(const JobState& job, const Verdict& verdict) {
  if (!AnyAgent(job, IsNew)) return false;
  const auto& waiting = verdict.waiting_processes;
  return std::any_of(verdict.culprits.begin(), verdict.culprits.end(),
                     [&](const Culprit& c) { return HasNewAgent(job, c.process); }) ||
         std::any_of(waiting.begin(), waiting.end(),
                     [&](int32_t process) { return HasNewAgent(job, process); });
}

// True if the agent of a culprit's host was restarted so recently that its report on the culprit
// may be on its way.
bool AwaitsFirstReport(const JobState& job, const Verdict& verdict, int64_t now_ns) {
  // Other causes do not blame silent ranks of a host that reports.
  if (verdict.cause != Cause::kMissingRank) return false;
  const auto is_silent = [&](const Culprit& culprit) {
    const Process* process = FindProcess(job, culprit.process);
    return process != nullptr && process->liveness == Liveness::kSilent;
  };
  if (std::none_of(verdict.culprits.begin(), verdict.culprits.end(), is_silent)) return false;
  const HeardHosts heard(job);
  return std::any_of(verdict.culprits.begin(), verdict.culprits.end(), [&](const Culprit& culprit) {
    const AgentState* agent = is_silent(culprit) ? heard.FindAgentOn(culprit.process) : nullptr;
    return agent != nullptr && now_ns - agent->first_ns < kAllReportedWithinNs;
  });
}

bool HasFinished(const Communicator& comm, uint64_t position) {
  return std::any_of(comm.members.begin(), comm.members.end(),
                     [position](const auto& entry) { return entry.second.finished > position; });
}

// True if a rank has finished the collective so recently that a rank which seems to wait may have
// done so, too. Otherwise the end of a hang would blame the ranks whose host reports last.
bool RestsOnMixedReports(const JobState& job, const Verdict& verdict) {
  const bool is_wait =
      verdict.cause == Cause::kStalledInFlight || verdict.cause == Cause::kMissingRank;
  if (!is_wait || OpKind(verdict.call.op) != CallKind::kCollective) return false;
  const auto comm = job.communicators.find(verdict.communicator);
  if (comm == job.communicators.end() || !HasFinished(comm->second, verdict.position)) return false;
  const int64_t due_ns = comm->second.finish_seen_ns + kFinishReportedWithinNs;
  const auto is_early = [&](int32_t process) {
    const AgentState* agent = FindAgent(job, process);
    return agent != nullptr && !agent->silent && agent->heard_ns < due_ns;
  };
  const auto& waiting = verdict.waiting_processes;
  return std::any_of(waiting.begin(), waiting.end(), is_early) ||
         std::any_of(verdict.culprits.begin(), verdict.culprits.end(),
                     [&](const Culprit& c) { return is_early(c.process); });
}

// The agents of the verdict's processes that have not ended.
class ConcernedAgents {
 public:
  ConcernedAgents(const JobState& job, const Verdict& verdict) : job_(job) {
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
    newest_ = agent;  // most neighbours have the same agent
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

void WeighMissed(const JobState& job, int64_t now_ns, Verdict* verdict) {
  std::set<std::string> stale, silent;
  const ConcernedAgents concerned(job, *verdict);
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
    verdict->missing_evidence.push_back(absl::StrCat("no report for ",
                                                     DurationInWords(verdict->evidence_age_ns),
                                                     " from the agent of ", HostsInWords(stale)));
  }
  if (!silent.empty()) {
    verdict->missing_evidence.push_back(absl::StrCat("the agent of ", HostsInWords(silent),
                                                     " no longer responds: its data is old"));
  }
}

int64_t OldestReportAgeNs(const JobState& job, int64_t now_ns) {
  int64_t age_ns = 0;
  for (const AgentState& agent : job.agents) age_ns = std::max(age_ns, now_ns - agent.heard_ns);
  return age_ns;
}

// The oldest report proves the wait up to its own time only. Between two ticks of agents that tick
// seldom, the ranks of a healthy job seem to wait.
void WeighShownWait(const Limits& limits, Verdict* verdict) {
  if (verdict->stale || !RestsOnWait(*verdict)) return;  // WeighMissed() has weighed stale reports
  if (verdict->evidence_age_ns <= kFreshReportNs) return;
  const int64_t shown_ns = std::max<int64_t>(verdict->waited_ns - verdict->evidence_age_ns, 0);
  if (shown_ns >= std::min(limits.suspect_floor_ns, limits.suspect_after_ns)) return;
  verdict->certainty = std::min(verdict->certainty, Certainty::kLikely);
  verdict->missing_evidence.push_back(
      absl::StrCat("the oldest report is ", DurationInWords(verdict->evidence_age_ns),
                   " old: the reports show a wait of ", DurationInWords(shown_ns)));
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

namespace {

// How long the process could not run since then. A job that is suspended again and again, as by
// gang scheduling, is judged by the time in which it ran.
int64_t SuspendedSince(const JobState& job, int32_t index, int64_t from_ns) {
  const Process* process = FindProcess(job, index);
  int64_t sum_ns = 0;
  if (process == nullptr) return sum_ns;
  for (const Suspension& one : process->suspensions) {
    sum_ns += std::max<int64_t>(one.to_ns - std::max(one.from_ns, from_ns), 0);
  }
  return sum_ns;
}

}  // namespace

int64_t CountedSince(const JobState& job, const std::vector<Waiter>& waiters) {
  int64_t since_ns = INT64_MAX;
  for (const Waiter& w : waiters) {
    // Nothing lets a wait count from an earlier time than its begin. So few processes are looked
    // at.
    if (w.wait.since_ns >= since_ns) continue;
    if (IsSuspended(job, w.process)) continue;  // it does not wait now
    const int64_t from_ns = std::max(w.wait.since_ns, CountsFrom(job, w.process));
    since_ns = std::min(since_ns, from_ns + SuspendedSince(job, w.process, from_ns));
  }
  return since_ns == INT64_MAX ? job.counts_from_ns : since_ns;
}

// A stopped process may be resumed: then the wait ends.
void WeighStops(const JobState& job, Verdict* verdict) {
  if (!RestsOnWait(*verdict) || IsContradiction(verdict->cause)) return;
  if (verdict->certainty <= Certainty::kLikely) return;
  const auto& waiting = verdict->waiting_processes;
  const bool any = std::any_of(verdict->culprits.begin(), verdict->culprits.end(),
                               [&](const Culprit& c) { return IsStopped(job, c.process); }) ||
                   std::any_of(waiting.begin(), waiting.end(),
                               [&](int32_t process) { return IsStopped(job, process); });
  if (any) verdict->certainty = std::min(verdict->certainty, Certainty::kLikely);
}

void WeighAge(const JobState& job, int64_t now_ns, const Limits& limits, Verdict* verdict) {
  verdict->unsettled = RestsOnNewAgent(job, *verdict) || AwaitsFirstReport(job, *verdict, now_ns);
  if (IsContradiction(verdict->cause)) return;
  if (RestsOnMixedReports(job, *verdict)) {
    verdict->unsettled = true;
    verdict->certainty = std::min(verdict->certainty, Certainty::kLikely);
    verdict->missing_evidence.push_back(
        "ranks have just finished a call: reports on the others may be on their way");
  }
  if (verdict->unsettled && RestsOnWait(*verdict) && verdict->certainty == Certainty::kCertain) {
    verdict->certainty = Certainty::kLikely;
    verdict->missing_evidence.push_back(
        "an agent has just begun: its reports on other calls and ranks may be on their way");
  }
  for (const Culprit& culprit : verdict->culprits) {
    verdict->counts_from_ns = std::max(verdict->counts_from_ns, CountsFrom(job, culprit.process));
    if (IsStale(job, culprit.process)) verdict->at_once = false;
  }
  if (AnyAgent(job, IsMissed)) {
    WeighMissed(job, now_ns, verdict);
  } else {
    // The age over the whole job is at most a little higher, and all reports are fresh.
    verdict->evidence_age_ns = std::max(verdict->evidence_age_ns, OldestReportAgeNs(job, now_ns));
  }
  WeighShownWait(limits, verdict);
}

}  // namespace rollcall
