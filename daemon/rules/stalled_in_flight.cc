// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "daemon/rules/divergence.h"
#include "daemon/rules/rules.h"
#include "daemon/words/evidence.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

bool IsStopped(const JobState& job, int32_t process) {
  const Process* known = FindProcess(job, process);
  return known != nullptr && (IsSuspended(*known) || known->state == 't');
}

// Blames stopped ranks (SIGSTOP, a debugger): they cannot do their part of the call.
void AddStopped(const Suspicion& s, Verdict* verdict) {
  std::vector<int32_t> ranks;
  for (const Waiter& w : s.call.waiters) {
    if (!IsStopped(s.job, w.process)) continue;
    const Member* member = FindMember(*s.call.communicator, w.rank);
    verdict->culprits.push_back(MakeCulprit(s.job, w.process, w.rank, member));
    ranks.push_back(verdict->culprits.back().rank);
  }
  if (ranks.empty()) return;
  verdict->evidence.push_back(absl::StrCat(RanksInWords(ranks),
                                           PluralForm(ranks.size(), " is", " are"),
                                           " stopped by a signal or a debugger"));
}

// Blames the ranks that have not finished the call, if others have.
void AddLeastAdvanced(const Suspicion& s, Verdict* verdict) {
  const Communicator& comm = *s.call.communicator;
  size_t finished = 0;
  for (const auto& [rank, member] : comm.members) {
    finished += member.has_markers && member.finished > s.call.position;
  }
  if (finished == 0) return;
  for (const Waiter& w : s.call.waiters) {
    const Member* member = FindMember(comm, w.rank);
    verdict->culprits.push_back(MakeCulprit(s.job, w.process, w.rank, member));
  }
  verdict->evidence.push_back(absl::StrCat(CountInWords(finished, "rank has", "ranks have"),
                                           " finished the call, shown by GPU markers"));
}

// Blames the ranks that have made a call that returns early but do not wait for it: MPI need not
// progress the call before the wait.
void AddElsewhere(const Suspicion& s, Verdict* verdict) {
  const Communicator& comm = *s.call.communicator;
  std::vector<int32_t> ranks;
  for (const auto& [rank, member] : comm.members) {
    const bool open = member.entered > s.call.position && member.finished <= s.call.position;
    if (!InRange(comm, rank) || !open || FindWait(s.job, comm, member)) continue;
    verdict->culprits.push_back(MakeCulprit(s.job, member.process, rank, &member));
    ranks.push_back(verdict->culprits.back().rank);
  }
  if (ranks.empty()) return;
  const bool one = ranks.size() == 1;
  verdict->evidence.push_back(
      absl::StrCat(RanksInWords(ranks), one ? " has made the call but does not wait for it"
                                            : " have made the call but do not wait for it"));
}

// True if the records prove that all ranks made the same call.
bool CalledTheSame(const Communicator& comm, uint64_t position) {
  const Member* first = nullptr;
  const CallRecord* record = nullptr;
  for (const auto& [rank, member] : comm.members) {
    if (member.entered <= position) continue;
    if (first == nullptr) {
      first = &member;
      record = FindCollective(member, position);
      continue;
    }
    const bool one_history = member.signature != 0 && member.signature == first->signature &&
                             member.entered == first->entered;
    if (one_history) continue;
    const CallRecord* other = FindCollective(member, position);
    if (record == nullptr || other == nullptr || !SameCall(record->args, other->args)) return false;
  }
  return true;
}

// Lowers the certainty if records are lost: calls with different operations or arguments do
// not finish either.
void AddUnproven(const Suspicion& s, Verdict* verdict) {
  if (s.call.kind != StuckCall::Kind::kCollective) return;
  if (CalledTheSame(*s.call.communicator, s.call.position)) return;
  verdict->certainty = std::min(verdict->certainty, Certainty::kLikely);
  verdict->missing_evidence.push_back(
      "records of this call are lost: the ranks may have made different calls");
}

// Removes stopped ranks from the waiting ranks.
void DropStoppedWaiters(const JobState& job, Verdict* verdict) {
  std::vector<int32_t> ranks, processes;
  for (size_t i = 0; i < verdict->waiting_processes.size(); ++i) {
    if (IsStopped(job, verdict->waiting_processes[i])) continue;
    ranks.push_back(verdict->waiting_ranks[i]);
    processes.push_back(verdict->waiting_processes[i]);
  }
  if (ranks.empty()) return;
  verdict->waiting_ranks = std::move(ranks);
  verdict->waiting_processes = std::move(processes);
}

}  // namespace

std::optional<Verdict> JudgeStalledCalls(const Suspicion& s) {
  if (!s.call.absents.empty() || s.call.size_differs) return std::nullopt;
  if (s.call.kind == StuckCall::Kind::kTeardown) return std::nullopt;
  std::optional<Verdict> verdict = Describe(
      s, Cause::kStalledInFlight, SuspectAfter(*s.call.communicator, s.call.call, s.limits));
  if (!verdict) return verdict;
  verdict->certainty = CertaintyOfWaits(s.call.waiters);
  if (!s.call.missing_evidence.empty()) verdict->certainty = Certainty::kPossible;
  AddUnproven(s, &*verdict);
  AddStopped(s, &*verdict);
  DropStoppedWaiters(s.job, &*verdict);
  if (verdict->culprits.empty() && ReturnsEarly(s.call.call.op)) AddElsewhere(s, &*verdict);
  // If no rank is ahead of the others, there is no least advanced rank.
  if (verdict->culprits.empty() && s.call.kind == StuckCall::Kind::kCollective) {
    AddLeastAdvanced(s, &*verdict);
  }
  return verdict;
}

}  // namespace rollcall
