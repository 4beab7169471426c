// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/rules/divergence.h"
#include "daemon/rules/rules.h"
#include "daemon/words/evidence.h"
#include "daemon/words/stops.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

// A collective needs all ranks. A send or receive needs those that have exchanged some before.
bool Concerns(const StuckCall& call, int32_t rank) {
  if (call.kind != StuckCall::Kind::kP2p) return true;
  return std::any_of(call.waiters.begin(), call.waiters.end(), [&](const Waiter& w) {
    const Member* member = FindMember(*call.communicator, w.rank);
    if (w.rank == rank || member == nullptr) return w.rank == rank;
    return std::any_of(member->traffic.begin(), member->traffic.end(),
                       [rank](const PeerTraffic& with) { return with.peer == rank; });
  });
}

// Blames stopped ranks, which cannot do their part of the call. One that has finished it by its
// markers may owe data to the network: its proxy threads stand still, too.
void AddStopped(const Suspicion& s, Verdict* verdict) {
  const Communicator& comm = *s.call.communicator;
  std::map<std::string, std::vector<int32_t>> stopped;
  for (const auto& [rank, member] : comm.members) {
    if (!InRange(comm, rank) || !IsStopped(s.job, member.process)) continue;
    if (HowGone(s.job, member) != Gone::kNo || !Concerns(s.call, rank)) continue;
    const Culprit culprit = MakeCulprit(s.job, member.process, rank, &member);
    stopped[StopInWords(culprit.state, culprit.wait_channel)].push_back(culprit.rank);
    verdict->culprits.push_back(culprit);
  }
  for (const auto& [words, ranks] : stopped) {
    verdict->evidence.push_back(
        absl::StrCat(RanksInWords(ranks), PluralForm(ranks.size(), " is ", " are "), words));
  }
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
                                           IsOfMpi(s.call.call.op)
                                               ? " returned from the call"
                                               : " finished the call, shown by GPU markers"));
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

bool WaitsInMessages(const StuckCall& call, int32_t rank) {
  return std::any_of(call.waiters.begin(), call.waiters.end(),
                     [rank](const Waiter& w) { return w.rank == rank; });
}

// Blames the ranks that have issued the other end of a message and do not wait for it: gloo drops a
// message whose request the program has not kept.
void AddOtherEnds(const Suspicion& s, Verdict* verdict) {
  const Communicator& comm = *s.call.communicator;
  for (const Waiter& w : s.call.waiters) {
    const int32_t peer = s.call.call.peer;
    const Member* member = FindMember(comm, peer);
    if (w.rank == peer || member == nullptr || WaitsInMessages(s.call, peer)) continue;
    if (HowGone(s.job, *member) != Gone::kNo) continue;
    verdict->culprits.push_back(MakeCulprit(s.job, member->process, peer, member));
    verdict->evidence.push_back(absl::StrCat(
        RanksInWords({verdict->culprits.back().rank}),
        " has issued the other end and does not wait for it: gloo drops a message whose request "
        "the program has not kept"));
    return;
  }
}

bool IsInsideMpi(const Process& process) {
  return std::any_of(process.blocked.begin(), process.blocked.end(),
                     [](const BlockedCall& blocked) { return IsOfMpi(blocked.op); });
}

// Blames the ranks that have returned from a call of MPI that others do not get out of, and have
// called nothing of MPI since: what they still owe the others goes on in their next call.
void AddLeft(const Suspicion& s, Verdict* verdict) {
  const Communicator& comm = *s.call.communicator;
  std::vector<int32_t> ranks;
  for (const auto& [rank, member] : comm.members) {
    const Process* process = FindProcess(s.job, member.process);
    const bool has_left = member.has_markers && member.finished > s.call.position;
    if (!InRange(comm, rank) || !has_left || process == nullptr || IsInsideMpi(*process)) continue;
    if (HowGone(s.job, member) != Gone::kNo || !IsHeard(s.job, member.process)) continue;
    verdict->culprits.push_back(MakeCulprit(s.job, member.process, rank, &member));
    ranks.push_back(verdict->culprits.back().rank);
  }
  if (ranks.empty()) return;
  verdict->certainty = std::min(verdict->certainty, Certainty::kLikely);
  verdict->evidence.push_back(absl::StrCat(
      RanksInWords(ranks), PluralForm(ranks.size(), " has returned", " have returned"),
      " from the call, and ", PluralForm(ranks.size(), "is", "are"), " outside of MPI"));
  verdict->missing_evidence.push_back(
      absl::StrCat("whether the other ranks need ", RanksInWords(ranks),
                   " to get out of the call: that depends on the library of MPI"));
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
  if (s.call.kind == StuckCall::Kind::kStoreKey) return std::nullopt;
  std::optional<Verdict> verdict = Describe(
      s, Cause::kStalledInFlight, SuspectAfter(*s.call.communicator, s.call.call, s.limits));
  if (!verdict) return verdict;
  verdict->certainty = CertaintyOfWaits(s.call.waiters);
  if (!s.call.missing_evidence.empty()) verdict->certainty = Certainty::kPossible;
  AddUnproven(s, &*verdict);
  AddStopped(s, &*verdict);
  DropStoppedWaiters(s.job, &*verdict);
  const bool returns_early =
      ReturnsEarly(s.call.call.op) || CallsReturnEarly(s.call.communicator->kind);
  const bool is_message_of_gloo =
      s.call.kind == StuckCall::Kind::kP2p && s.call.communicator->kind == CommKind::kGloo;
  if (is_message_of_gloo) {
    verdict->certainty = std::min(verdict->certainty, Certainty::kLikely);
    verdict->missing_evidence.push_back("whether gloo still has both ends of the message");
    if (verdict->culprits.empty()) AddOtherEnds(s, &*verdict);
  } else if (verdict->culprits.empty() && returns_early) {
    AddElsewhere(s, &*verdict);
  }
  if (verdict->culprits.empty() && IsOfMpi(s.call.call.op)) AddLeft(s, &*verdict);
  // If no rank is ahead of the others, there is no least advanced rank.
  if (verdict->culprits.empty() && s.call.kind == StuckCall::Kind::kCollective) {
    AddLeastAdvanced(s, &*verdict);
  }
  return verdict;
}

}  // namespace rollcall
