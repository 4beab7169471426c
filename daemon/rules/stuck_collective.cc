// SPDX-License-Identifier: Apache-2.0
// FindStuckCollectives(): at most two calls of a communicator. One is the first call that
// some rank has not entered. The other, before it, is the first call that all ranks have
// entered and that does not end.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "daemon/rules/members/rank_map.h"
#include "daemon/rules/stuck_call.h"
#include "daemon/words/communicator_names.h"
#include "daemon/words/rank_ranges.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

// Nearly all ranks are neither: MakeAbsent() would look up what no rule needs.
bool IsGoneOrSilent(const JobState& job, const Member& member) {
  const Process* process = FindProcess(job, member.process);
  return (process != nullptr && IsSilent(*process)) || HowGone(job, member) != Gone::kNo;
}

// Adds a rank that is gone or silent and has not finished the call. A rank that exited
// normally has finished the call unless its markers show otherwise.
void AddIfGoneInside(const JobState& job, int32_t rank, const Member& member, StuckCall* call) {
  const bool shown = member.has_markers && member.finished <= call->position;
  if (member.has_markers && !shown) return;
  if (!IsGoneOrSilent(job, member)) return;
  Absent absent = MakeAbsent(job, rank, member, Lack::kGone);
  // A rank inside CommDestroy with open calls waits like the others.
  const bool waits = member.state == MemberState::kFinalizing;
  if (absent.gone == Gone::kLeft && (waits || !shown)) return;
  if (!shown) absent.at_most = std::min(absent.at_most, Certainty::kLikely);
  call->absents.push_back(absent);
}

// Adds the ranks that have not entered the call or cannot finish it.
void AddAbsents(const JobState& job, const Communicator& comm, StuckCall* call) {
  for (const auto& [rank, member] : comm.members) {
    if (!InRange(comm, rank)) continue;
    if (member.entered > call->position) {
      AddIfGoneInside(job, rank, member, call);
    } else if (member.state != MemberState::kFailed) {
      call->absents.push_back(MakeAbsent(job, rank, member, Lack::kNotEntered));
    }
  }
}

// Adds the ranks whose GPU has not started the call although the host has made it or is
// inside it. A call in an open group has not been made.
void AddNotStarted(const JobState& job, const Communicator& comm, StuckCall* call) {
  for (const auto& [rank, member] : comm.members) {
    if (!InRange(comm, rank) || !member.has_markers) continue;
    if (member.entered <= call->position || member.started > call->position) continue;
    if (HowGone(job, member) != Gone::kNo || !IsFresh(job, member.process)) continue;
    if (member.host_blocked_since_ns != 0) continue;
    const Lack lack = member.returned > call->position ? Lack::kNotStarted : Lack::kNotEntered;
    call->absents.push_back(MakeAbsent(job, rank, member, lack));
  }
}

// Adds the ranks without any report. Their data is missing, but they may have made the call:
// the verdict on them is at most `possible`.
void AddUnheard(const JobState& job, const Communicator& comm, RankFinder* finder,
                StuckCall* call) {
  const std::vector<RankRange> unknown = UnknownRanks(comm);
  if (unknown.empty()) return;
  const auto processes = finder->Find(comm, unknown).processes;
  for (const UnknownMember& member : SplitByProcess(unknown, processes)) {
    call->absents.push_back(MakeUnheard(job, member));
  }
  call->missing_evidence.push_back(absl::StrCat("no report on ", RankRanges(unknown).InWords(),
                                                " of ", CommunicatorInWords(job, comm),
                                                ", although all its ranks have joined"));
}

// Adds missing evidence for ranks that have entered the call, if no evidence shows that they
// wait in it or have finished it. `*over`: one of them has left.
void AddBystanders(const JobState& job, const Communicator& comm, StuckCall* call, bool* over) {
  std::vector<int32_t> bystanders;
  for (const auto& [rank, member] : comm.members) {
    if (!InRange(comm, rank) || member.entered <= call->position) continue;
    if (member.has_markers && member.finished > call->position) continue;
    const std::optional<Wait> wait = FindWait(job, comm, member);
    if (wait && (member.has_markers || member.entered == call->position + 1)) continue;
    if (HowGone(job, member) == Gone::kLeft) *over = true;
    bystanders.push_back(PublicRank(job, member.process, rank));
  }
  if (bystanders.empty()) return;
  call->missing_evidence.push_back(
      absl::StrCat("no evidence whether ", RanksInWords(bystanders), " still ",
                   PluralForm(bystanders.size(), "waits", "wait"), " in the call"));
}

// The ranks that wait in later calls wait for those which have not finished this one. If all of
// these are stopped, no other rank would show the wait.
void AddHeldUpByStopped(const JobState& job, const MemberSummary& summary, StuckCall* call) {
  const auto is_stopped = [&job](const Waiter& w) { return IsStopped(job, w.process); };
  if (!std::all_of(call->waiters.begin(), call->waiters.end(), is_stopped)) return;
  int64_t since_ns = INT64_MAX;
  for (const Waiter& w : summary.waiters) {
    if (w.wait.proof == Proof::kIndirect || w.wait.position <= call->position) continue;
    call->waiters.push_back(w);
    if (!is_stopped(w)) since_ns = std::min(since_ns, w.wait.since_ns);
  }
  if (since_ns != INT64_MAX) call->since_ns = since_ns;
}

// Adds the call that all ranks have entered.
void AddInFlight(const JobState& job, const Communicator& comm, const MemberSummary& summary,
                 RankFinder* finder, std::vector<StuckCall>* calls) {
  StuckCall call;
  call.communicator = &comm;
  call.position = UINT64_MAX;
  for (const Waiter& w : summary.waiters) {
    if (w.wait.proof != Proof::kIndirect) {
      call.position = std::min(call.position, w.wait.position);
    }
  }
  if (call.position >= summary.least_entered) return;
  for (const Waiter& w : summary.waiters) {
    if (w.wait.proof == Proof::kIndirect || w.wait.position != call.position) continue;
    call.waiters.push_back(w);
    call.since_ns = std::max(call.since_ns, w.wait.since_ns);
  }
  AddNotStarted(job, comm, &call);
  AddAbsents(job, comm, &call);
  AddUnheard(job, comm, finder, &call);
  if (call.absents.empty()) {
    bool over = false;
    AddBystanders(job, comm, &call, &over);
    if (over) return;
    AddHeldUpByStopped(job, summary, &call);
  } else {
    for (const Waiter& w : summary.waiters) {
      const bool later = w.wait.proof != Proof::kIndirect && w.wait.position > call.position;
      if (later) call.waiters.push_back(w);
    }
    for (const Waiter& w : call.waiters) call.since_ns = std::min(call.since_ns, w.wait.since_ns);
  }
  call.call = CallAt(comm, call.position);
  calls->push_back(std::move(call));
}

// Adds the call that some rank has not entered.
void AddOwed(const JobState& job, const Communicator& comm, const MemberSummary& summary,
             RankFinder* finder, std::vector<StuckCall>* calls) {
  StuckCall call;
  call.communicator = &comm;
  call.position = summary.least_entered;
  call.waiters.reserve(summary.waiters.size());
  for (const Waiter& w : summary.waiters) {
    if (w.wait.position < call.position) continue;
    call.waiters.push_back(w);
    call.since_ns = call.since_ns == 0 ? w.wait.since_ns : std::min(call.since_ns, w.wait.since_ns);
  }
  if (call.waiters.empty()) return;
  AddAbsents(job, comm, &call);
  AddUnheard(job, comm, finder, &call);
  call.call = CallAt(comm, call.position);
  calls->push_back(std::move(call));
}

}  // namespace

void FindStuckCollectives(const JobState& job, const Communicator& comm,
                          const MemberSummary& summary, RankFinder* finder,
                          std::vector<StuckCall>* calls) {
  if (summary.waiters.empty()) return;
  AddOwed(job, comm, summary, finder, calls);
  AddInFlight(job, comm, summary, finder, calls);
}

}  // namespace rollcall
