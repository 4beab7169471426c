// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/post_mortem.h"

#include <signal.h>

#include <algorithm>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/diagnosis/diagnose.h"
#include "daemon/model/progress.h"
#include "daemon/words/evidence.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

using ProcessSet = std::set<int32_t>;  // indices into JobState::processes

constexpr int32_t kSignalled = 128;  // exit code of a program that a signal ended: 128 + signal

// Signals by which a person or the launcher ends a job.
bool IsRequest(int32_t signal) {
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
}

bool HasFailed(const Process& process) {
  if (!process.error.empty()) return true;
  if (process.exit_signal != 0) return !IsRequest(process.exit_signal);
  if (IsRequest(process.exit_code - kSignalled)) return false;  // its handler ended it
  return process.exit_code > 0 || process.liveness == Liveness::kDied;
}

bool WasKilled(const Process& process) {
  return process.error.empty() &&
         (process.exit_signal == SIGKILL || process.exit_code == kSignalled + SIGKILL);
}

int64_t FailedAt(const Process& process) {
  return process.error.empty() ? process.ended_ns : process.error_ns;
}

// Its agent saw the failure at FailedAt(). The process failed at this time or later.
int64_t EarliestFailure(const Process& process) {
  if (!process.error.empty() || process.ended_after_ns == 0) return FailedAt(process);
  return process.ended_after_ns + 1;
}

bool IsGone(const JobState& job, int32_t process) {
  return HowProcessEnded(job, process) != Gone::kNo;
}

// True if the process has ended and the agent that reports the end is settled.
bool IsKnownToHaveEnded(const JobState& job, int32_t process) {
  const AgentState* agent = FindAgent(job, process);
  return IsGone(job, process) && (agent == nullptr || agent->is_settled);
}

// The communicators whose members have all ended, without those in `judged`.
JobState Fallen(const JobState& job, std::set<uint64_t>* judged) {
  JobState fallen;
  fallen.key = job.key;
  for (const auto& [id, comm] : job.communicators) {
    const bool ended = std::all_of(comm.members.begin(), comm.members.end(), [&](const auto& m) {
      return IsKnownToHaveEnded(job, m.second.process);
    });
    if (!ended || comm.members.empty() || !judged->insert(id).second) continue;
    Communicator& copy = fallen.communicators[id] = comm;
    copy.version = 0;  // its count of waiting members is for ended processes
  }
  if (!fallen.communicators.empty()) fallen.processes = job.processes;
  return fallen;
}

// Returns the members of the communicators, and the ranks that ended before they joined one. Skips
// ranks that ended before the creation of all of them: they belong to an earlier attempt.
ProcessSet Members(const JobState& job) {
  ProcessSet members;
  int64_t made_ns = INT64_MAX;
  for (const auto& [id, comm] : job.communicators) {
    for (const auto& [rank, member] : comm.members) {
      members.insert(member.process);
      made_ns = std::min(made_ns, member.init_entered_ns);
    }
  }
  for (size_t i = 0; i < job.processes.size(); ++i) {
    const Process& process = job.processes[i];
    if (process.has_segment || process.global_rank < 0) continue;
    const auto index = static_cast<int32_t>(i);
    if (IsGone(job, index) && process.ended_ns >= made_ns) members.insert(index);
  }
  return members;
}

struct Failure {
  ProcessSet first;    // the processes that failed before any other process ended
  ProcessSet excused;  // killed at the same time, probably by the launcher
  ProcessSet rivals;   // may have ended or failed before `first`
};

// Launchers kill the remaining ranks (MPICH's does), so a rank that ended in another way ended
// first. The launcher may need longer than the agent needs between two reports, so the ranks that
// were killed later count, too. If only a minority was killed, the reason may be lack of memory,
// and the failures of the other ranks may be its effect.
void ExcuseKilled(const JobState& job, const ProcessSet& members, Failure* failure) {
  const auto was_killed = [&](int32_t process) { return WasKilled(job.processes[process]); };
  const auto killed =
      static_cast<size_t>(std::count_if(members.begin(), members.end(), was_killed));
  const ProcessSet& first = failure->first;
  if (2 * killed <= members.size() || std::all_of(first.begin(), first.end(), was_killed)) return;
  for (const int32_t process : first) {
    if (was_killed(process)) failure->excused.insert(process);
  }
  for (const int32_t process : failure->excused) failure->first.erase(process);
}

// Whether no failure is another than the loss of a peer.
bool OnlyLostPeers(const JobState& job, const ProcessSet& members) {
  return std::all_of(members.begin(), members.end(), [&](int32_t process) {
    const Process& known = job.processes[process];
    return !HasFailed(known) || LostAPeer(known);
  });
}

// A rank that has lost a peer has not failed first where another one has failed of itself: an
// exception has its time, and a kill only that of the look at which its agent missed the process.
bool MayHaveFailedFirst(const JobState& job, const ProcessSet& members, const Process& process) {
  if (!HasFailed(process)) return false;
  return !LostAPeer(process) || OnlyLostPeers(job, members);
}

// The processes that may have ended or failed before `first`: agents of several hosts look at their
// processes at different times. A process that the launcher ended, as its agent saw later, does not
// count.
ProcessSet FindRivals(const JobState& job, const ProcessSet& members, const ProcessSet& first,
                      int64_t first_failure) {
  ProcessSet rivals;
  for (const int32_t process : members) {
    const Process& known = job.processes[process];
    const bool was_seen_before = known.ended_ns < first_failure;
    const bool may_have_failed_before =
        MayHaveFailedFirst(job, members, known) && EarliestFailure(known) <= first_failure;
    if (first.count(process) == 0 && (was_seen_before || may_have_failed_before)) {
      rivals.insert(process);
    }
  }
  return rivals;
}

// If several processes ended between the same two looks of their agents, takes those with an
// exception or a signal of their own.
Failure FindFailure(const JobState& job, const ProcessSet& members) {
  int64_t first_end = INT64_MAX, first_failure = INT64_MAX;
  for (const int32_t process : members) {
    first_end = std::min(first_end, job.processes[process].ended_ns);
  }
  for (const int32_t process : members) {
    const Process& known = job.processes[process];
    if (!MayHaveFailedFirst(job, members, known) || EarliestFailure(known) > first_end) continue;
    first_failure = std::min(first_failure, FailedAt(known));
  }
  Failure failure;
  for (const int32_t process : members) {
    const Process& known = job.processes[process];
    const bool may_be_first = MayHaveFailedFirst(job, members, known);
    if (may_be_first && FailedAt(known) == first_failure) failure.first.insert(process);
  }
  failure.rivals = FindRivals(job, members, failure.first, first_failure);
  ExcuseKilled(job, members, &failure);
  // Most ranks ended together: the reason is outside the job.
  if (2 * failure.first.size() > members.size()) failure.first.clear();
  return failure;
}

bool EndedWell(const Process& process) {
  return process.error.empty() && process.exit_signal == 0 && process.exit_code == 0;
}

// Of those that ended in good order, the ranks that have made fewer calls on a communicator than
// one that lost a peer, and that were in no call.
ProcessSet FindBehind(const JobState& job) {
  ProcessSet behind, in_call;
  for (const auto& [id, comm] : job.communicators) {
    uint64_t made = 0;
    for (const auto& [rank, member] : comm.members) {
      if (LostAPeer(job.processes[member.process])) made = std::max(made, member.entered);
    }
    for (const auto& [rank, member] : comm.members) {
      if (!EndedWell(job.processes[member.process])) continue;
      if (member.entered > member.finished) in_call.insert(member.process);
      if (member.entered < made) behind.insert(member.process);
    }
  }
  for (const int32_t process : in_call) behind.erase(process);
  return behind;
}

// The ranks that ended in good order, if the others failed of nothing but that. The exception of a
// rank that loses a peer is known to the moment and the end of a process only from one look of its
// agent to the next, so times prove nothing here: the calls do, which these ranks have not made.
ProcessSet FindLeavers(const JobState& job, const ProcessSet& members) {
  return OnlyLostPeers(job, members) ? FindBehind(job) : ProcessSet();
}

// The exceptions have ended the call that these ranks have not made, or in which they ended.
void Reopen(const ProcessSet& gone, JobState* job) {
  for (auto& [id, comm] : job->communicators) {
    uint64_t made = UINT64_MAX;
    for (const auto& [rank, member] : comm.members) {
      if (gone.count(member.process) != 0) made = std::min(made, member.finished);
    }
    for (auto& [rank, member] : comm.members) {
      const Process& process = job->processes[member.process];
      if (member.entered <= made || !LostAPeer(process)) continue;
      member.finished = std::min(member.finished, member.entered - 1);
      member.waiting_since_ns = process.error_ns;
      member.may_wait = true;
      member.state = MemberState::kReady;  // the end of its process destroyed the communicator
      member.is_over = false;
    }
  }
}

int64_t NextEnd(const JobState& job, const ProcessSet& members, const ProcessSet& first) {
  int64_t next = INT64_MAX;
  for (const int32_t process : members) {
    if (first.count(process) == 0) next = std::min(next, job.processes[process].ended_ns);
  }
  return next;
}

void Revive(const ProcessSet& members, const ProcessSet& first, JobState* job) {
  for (const int32_t process : members) {
    if (first.count(process) != 0) continue;
    Process& known = job->processes[process];
    known.liveness = Liveness::kAlive;
    known.ended_ns = 0;
    known.exit_code = -1;
    known.exit_signal = 0;
    known.error.clear();
    known.error_ns = 0;
  }
}

bool BlamesOnly(const Verdict& verdict, const ProcessSet& processes) {
  return !verdict.culprits.empty() &&
         std::all_of(verdict.culprits.begin(), verdict.culprits.end(),
                     [&](const Culprit& c) { return processes.count(c.process) != 0; });
}

std::vector<int32_t> GlobalRanks(const JobState& job, const ProcessSet& processes) {
  std::vector<int32_t> ranks;
  for (const int32_t process : processes) {
    if (job.processes[process].global_rank >= 0) {
      ranks.push_back(job.processes[process].global_rank);
    }
  }
  return ranks;
}

// Returns the ranks that failed first, and the time until the next rank ended.
std::string Order(const JobState& job, const ProcessSet& first, int64_t next_ns) {
  const std::vector<int32_t> ranks = GlobalRanks(job, first);
  const int64_t apart = next_ns - FailedAt(job.processes[*first.begin()]);
  return absl::StrCat(ranks.empty() ? "the culprit" : RanksInWords(ranks), " failed first, ",
                      DurationInWords(std::max<int64_t>(apart, 0)),
                      " before the next rank ended: later failures are consequences");
}

// Words the same for ranks that ended in good order.
std::string WhatOthersLost(const JobState& job, const ProcessSet& leavers) {
  const std::vector<int32_t> ranks = GlobalRanks(job, leavers);
  return absl::StrCat("the exceptions of the other ranks report that a peer is gone: ",
                      ranks.empty() ? "the culprit" : RanksInWords(ranks), " ended before");
}

// Agents look at their processes at different times, up to two seconds apart.
void AddRivals(const JobState& job, const ProcessSet& rivals, Verdict* verdict) {
  if (rivals.empty()) return;
  verdict->certainty = std::min(verdict->certainty, Certainty::kLikely);
  const std::vector<int32_t> ranks = GlobalRanks(job, rivals);
  verdict->missing_evidence.push_back(
      absl::StrCat(ranks.empty() ? "other ranks" : RanksInWords(ranks),
                   " ended between the same two looks of the agents: the order is unknown"));
}

// The excused ranks ended in the same report, so it is unknown which rank ended first.
void AddExcused(const JobState& job, const ProcessSet& excused, Verdict* verdict) {
  if (excused.empty()) return;
  verdict->certainty = std::min(verdict->certainty, Certainty::kLikely);
  const std::vector<int32_t> ranks = GlobalRanks(job, excused);
  verdict->missing_evidence.push_back(absl::StrCat(
      ranks.empty() ? "other ranks" : RanksInWords(ranks), ranks.size() == 1 ? " was" : " were",
      " killed at the same time as the culprit ended: probably by the launcher, which killed most "
      "ranks"));
}

}  // namespace

std::vector<Verdict> JudgeTheEnd(const JobState& job, std::set<uint64_t>* judged) {
  JobState fallen = Fallen(job, judged);
  const ProcessSet members = Members(fallen);
  if (members.size() < 2 || members.count(-1) != 0) return {};
  const ProcessSet leavers = FindLeavers(fallen, members);
  const Failure failure = leavers.empty() ? FindFailure(fallen, members) : Failure{leavers, {}, {}};
  const ProcessSet& first = failure.first;
  if (first.empty()) return {};
  const int64_t next_ns = NextEnd(fallen, members, first);
  const std::string order =
      leavers.empty() ? Order(fallen, first, next_ns) : WhatOthersLost(fallen, leavers);
  Reopen(first, &fallen);
  Revive(members, first, &fallen);

  Limits at_once;
  at_once.suspect_after_ns = at_once.suspect_floor_ns = 0;
  at_once.hang_after_ns = at_once.absent_for_good_ns = 0;
  // The agents of the others may have looked earlier.
  const int64_t failed_ns = FailedAt(fallen.processes[*first.begin()]);
  std::vector<Verdict> verdicts = Diagnose(fallen, std::max(next_ns, failed_ns), at_once);
  verdicts.erase(
      std::remove_if(verdicts.begin(), verdicts.end(),
                     [&](const Verdict& v) { return IsWarning(v.cause) || !BlamesOnly(v, first); }),
      verdicts.end());
  for (Verdict& verdict : verdicts) {
    verdict.at_once = true;
    if (failure.rivals.empty()) verdict.evidence.push_back(order);
    AddExcused(fallen, failure.excused, &verdict);
    AddRivals(fallen, failure.rivals, &verdict);
  }
  return verdicts;
}

}  // namespace rollcall
