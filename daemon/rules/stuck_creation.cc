// SPDX-License-Identifier: Apache-2.0
// FindStuckCreation(): a communicator whose creation does not return, because ranks have
// not joined or for an unknown reason.
#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/rules/claimed_sizes.h"
#include "daemon/rules/members/rank_map.h"
#include "daemon/rules/members/shrunk.h"
#include "daemon/rules/stuck_call.h"
#include "daemon/words/rank_ranges.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

// The creating call that a waiting rank is inside.
Op CreatingCall(const JobState& job, const Communicator& comm) {
  for (const auto& [rank, member] : comm.members) {
    const Process* process = FindProcess(job, member.process);
    if (process == nullptr || member.state != MemberState::kInitializing) continue;
    for (const BlockedCall& blocked : process->blocked) {
      const bool ours = blocked.communicator == comm.id || blocked.communicator == 0;
      if (ours && OpKind(blocked.op) == CallKind::kCreate) return blocked.op;
    }
  }
  return comm.parent == 0 ? Op::kCommInitRank : Op::kCommSplit;
}

// Adds a rank that joined but cannot take part any more, or that has become silent. False if the
// rank still takes part.
bool AddLost(const JobState& job, int32_t rank, const Member& member, StuckCall* call,
             std::vector<int32_t>* failed) {
  const Process* process = FindProcess(job, member.process);
  const bool is_silent = process != nullptr && IsSilent(*process);
  const bool has_failed = member.state == MemberState::kFailed;
  const Gone gone = HowProcessEnded(job, member.process);
  if (!has_failed && !is_silent && gone == Gone::kNo) return false;
  Absent absent = MakeAbsent(job, rank, member, Lack::kGone);
  absent.gone = gone;
  if (has_failed) failed->push_back(PublicRank(job, member.process, rank));
  call->absents.push_back(absent);
  return true;
}

bool IsWrong(const SizeDispute& dispute, int32_t rank) {
  const auto at = std::lower_bound(
      dispute.wrong.begin(), dispute.wrong.end(), rank,
      [](const ClaimedSize& claim, int32_t wanted) { return claim.rank < wanted; });
  return at != dispute.wrong.end() && at->rank == rank;
}

// A rank with another size than the majority is inside a creation that is not the others'.
void AddWrongSizes(const JobState& job, const Communicator& comm, const SizeDispute& dispute,
                   StuckCall* call) {
  for (const ClaimedSize& claim : dispute.wrong) {
    const Member* member = FindMember(comm, claim.rank);
    if (member == nullptr) continue;
    Absent absent = MakeAbsent(job, claim.rank, *member, Lack::kNotEntered);
    absent.gone = HowProcessEnded(job, member->process);
    absent.disagrees = true;
    absent.is_refused = member->state == MemberState::kFailed;
    call->absents.push_back(absent);
  }
}

bool HasRival(const Communicator& comm, int32_t rank) {
  return std::any_of(comm.rivals.begin(), comm.rivals.end(),
                     [rank](const Rival& rival) { return rival.rank == rank; });
}

bool IsInside(const Member& member) {
  return member.state == MemberState::kInitializing && member.init_entered_ns > 0;
}

Waiter MakeCreationWaiter(const JobState& job, int32_t rank, const Member& member) {
  const Proof proof = IsFresh(job, member.process) ? Proof::kShown : Proof::kInferred;
  return {rank, member.process, {0, member.init_entered_ns, proof}};
}

// Where no other rank waits, those wait whose rank another process has, too.
void AddWaitingRivals(const JobState& job, const Communicator& comm, StuckCall* call) {
  for (const Rival& rival : comm.rivals) {
    const Member* member = FindMember(comm, rival.rank);
    if (member == nullptr || !IsInside(*member)) continue;
    call->waiters.push_back(MakeCreationWaiter(job, rival.rank, *member));
    return;
  }
}

// Processes that have one rank. Which of them is wrong is not known.
void AddRivals(const JobState& job, const Communicator& comm, StuckCall* call) {
  std::set<int32_t> added;
  for (const Rival& rival : comm.rivals) {
    const Member* member = FindMember(comm, rival.rank);
    if (member == nullptr) continue;
    if (added.insert(rival.rank).second) {
      call->absents.push_back(MakeAbsent(job, rival.rank, *member, Lack::kNotEntered));
      call->absents.back().gone = HowProcessEnded(job, member->process);
      call->absents.back().disagrees = true;
      call->absents.back().is_refused = member->state == MemberState::kFailed;
    }
    Absent absent;
    absent.rank = rival.rank;
    absent.process = rival.process;
    absent.gone = HowProcessEnded(job, rival.process);
    absent.disagrees = true;
    absent.is_refused = rival.is_refused;
    call->absents.push_back(absent);
  }
}

// `dispute`: a creation that failed although its rank passed the right size failed because of the
// others.
void AddMembers(const JobState& job, const Communicator& comm, const SizeDispute& dispute,
                StuckCall* call) {
  std::vector<int32_t> failed;
  for (const auto& [rank, member] : comm.members) {
    if (IsWrong(dispute, rank) || HasRival(comm, rank)) continue;
    if (dispute.size != 0 && member.state == MemberState::kFailed) continue;
    if (!InRange(comm, rank) || AddLost(job, rank, member, call, &failed)) continue;
    if (IsInside(member)) call->waiters.push_back(MakeCreationWaiter(job, rank, member));
  }
  if (failed.empty()) return;
  call->evidence.push_back(absl::StrCat(RanksInWords(failed), ": ",
                                        PluralForm(failed.size(), "its", "their"),
                                        " creating call failed"));
}

// The ranks without a report, of those that a communicator of this size has.
std::vector<RankRange> UnknownRanksBelow(const Communicator& comm, int32_t size) {
  std::vector<RankRange> unknown;
  for (RankRange range : UnknownRanks(comm)) {
    range.last = std::min(range.last, size - 1);
    if (range.first <= range.last) unknown.push_back(range);
  }
  return unknown;
}

// Ranks that a shrink excludes owe nothing: takes them out of `unknown`. Until the communicator is
// made, its size is that of its parent. False if the excluded ranks are unknown.
bool LeaveOutExcluded(const JobState& job, const Communicator& comm, RankFinder* finder,
                      std::vector<RankRange>* unknown, StuckCall* call) {
  if (call->call.op != Op::kCommShrink || unknown->empty()) return true;
  const std::optional<ShrunkRanks> shrunk = FindExcluded(comm, RankRanges(*unknown));
  if (!shrunk) {
    call->missing_evidence.push_back("which ranks the shrink excludes");
    return false;
  }
  *unknown = shrunk->late.ranges();
  if (shrunk->excluded.empty()) return true;
  const auto processes = finder->Find(comm, shrunk->excluded.ranges()).processes;
  std::vector<int32_t> ranks;
  for (const int32_t rank : shrunk->excluded.First(shrunk->excluded.size())) {
    const auto process = processes.find(rank);
    ranks.push_back(PublicRank(job, process == processes.end() ? -1 : process->second, rank));
  }
  call->evidence.push_back(absl::StrCat("the shrink excludes ", RanksInWords(ranks)));
  return true;
}

void AddNeverJoined(const JobState& job, const Communicator& comm, int32_t size, RankFinder* finder,
                    StuckCall* call) {
  std::vector<RankRange> unknown = UnknownRanksBelow(comm, size);
  const bool all_owe = LeaveOutExcluded(job, comm, finder, &unknown, call);
  const RankProcesses found = finder->Find(comm, unknown);
  std::vector<RankRange> nameless;
  for (const auto& [ranks, index] : SplitByProcess(unknown, found.processes)) {
    Absent absent;
    absent.rank = ranks.first;
    absent.ranks = ranks.last - ranks.first + 1;
    if (index < 0) {
      nameless.push_back(ranks);
      absent.at_most = Certainty::kLikely;
    } else {
      const Process& process = *FindProcess(job, index);
      absent.process = index;
      if (found.guessed) absent.at_most = Certainty::kLikely;
      absent.gone = HowProcessEnded(job, index);
      absent.gone_since_ns = process.ended_ns;
      absent.silent = process.liveness == Liveness::kSilent;
      absent.stale = IsStale(job, index);
      if (absent.gone == Gone::kNo && !IsFresh(job, index)) {
        absent.at_most = Certainty::kPossible;
      }
    }
    if (!all_owe) absent.at_most = Certainty::kPossible;
    call->absents.push_back(absent);
  }
  if (nameless.empty()) return;
  call->missing_evidence.push_back(
      absl::StrCat(job.offline ? "no segment here is of " : "no agent reports a process of ",
                   RankRanges(std::move(nameless)).InWords(),
                   " of the communicator: not started, without the library, or on a host ",
                   job.offline ? "without its segments here" : "without an agent"));
}

int64_t WaitBegin(const StuckCall& call) {
  int64_t first = INT64_MAX, last = 0;
  for (const Waiter& w : call.waiters) {
    first = std::min(first, w.wait.since_ns);
    last = std::max(last, w.wait.since_ns);
  }
  return call.absents.empty() ? last : first;
}

}  // namespace

void FindStuckCreation(const JobState& job, const Communicator& comm, RankFinder* finder,
                       std::vector<StuckCall>* calls) {
  StuckCall call;
  call.kind = StuckCall::Kind::kCreation;
  call.communicator = &comm;
  const SizeDispute dispute = JudgeClaimedSizes(comm);
  AddMembers(job, comm, dispute, &call);
  if (call.waiters.empty()) AddWaitingRivals(job, comm, &call);
  if (call.waiters.empty()) return;
  call.call.op = CreatingCall(job, comm);
  AddWrongSizes(job, comm, dispute, &call);
  AddRivals(job, comm, &call);
  // A number that two processes have is missing elsewhere.
  if (comm.rivals.empty()) {
    AddNeverJoined(job, comm, dispute.size == 0 ? SmallestSize(comm) : dispute.size, finder, &call);
  }
  call.since_ns = WaitBegin(call);
  if (dispute.size != 0) {
    call.evidence.push_back(
        absl::StrCat("the ranks disagree on the size: ", DisputeInWords(job, comm, dispute)));
  } else if (comm.other_size != 0) {
    for (Absent& absent : call.absents) absent.at_most = Certainty::kPossible;
    call.evidence.push_back(absl::StrCat("the ranks disagree on the size: some passed ", comm.size,
                                         ", some ", comm.other_size));
  }
  calls->push_back(std::move(call));
}

}  // namespace rollcall
