// SPDX-License-Identifier: Apache-2.0
// FindStuckCreation(): a communicator whose creation waits, for ranks that have
// not come or for nobody.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "daemon/diagnosis/rules/rank_map.h"
#include "daemon/diagnosis/rules/stuck_call.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

// The creating call that a waiting rank is in.
Op CreatingCall(const JobState& job, const Communicator& comm) {
  for (const auto& [rank, member] : comm.members) {
    const Process* process = FindProcess(job, member.process);
    if (process == nullptr || member.state != MemberState::kInitializing) continue;
    for (const BlockedCall& blocked : process->blocked) {
      const bool ours = blocked.communicator == comm.id || blocked.communicator == 0;
      if (ours && KindOf(blocked.op) == CallKind::kCreate) return blocked.op;
    }
  }
  return comm.parent == 0 ? Op::kCommInitRank : Op::kCommSplit;
}

// A rank that came, but cannot take part any more; or that fell silent in it.
bool AddLost(const JobState& job, int32_t rank, const Member& member, StuckCall* call) {
  Absent absent = MakeAbsent(job, rank, member, Lack::kGone);
  absent.gone = HowProcessEnded(job, member.process);
  const bool failed = member.state == MemberState::kFailed;
  if (!failed && !absent.silent && absent.gone == Gone::kNo) return false;
  if (failed) {
    call->evidence.push_back(
        absl::StrCat(RanksInWords({PublicRank(job, member.process, rank)}), ": its call failed"));
  }
  call->absents.push_back(absent);
  return true;
}

void AddMembers(const JobState& job, const Communicator& comm, StuckCall* call) {
  for (const auto& [rank, member] : comm.members) {
    if (!InRange(comm, rank) || AddLost(job, rank, member, call)) continue;
    if (member.state != MemberState::kInitializing || member.init_entered_ns <= 0) continue;
    const Proof proof = IsFresh(job, member.process) ? Proof::kShown : Proof::kInferred;
    call->waiters.push_back({rank, member.process, {0, member.init_entered_ns, proof}});
  }
}

void AddNeverCame(const JobState& job, const Communicator& comm, StuckCall* call) {
  const std::vector<int32_t> unknown = UnknownRanks(comm);
  const RankProcesses found = ProcessesOfRanks(job, comm, unknown);
  std::vector<int32_t> nameless;
  for (const int32_t rank : unknown) {
    Absent absent;
    absent.rank = rank;
    const auto it = found.processes.find(rank);
    if (it == found.processes.end()) {
      nameless.push_back(rank);
      absent.at_most = Certainty::kLikely;
    } else {
      const Process& process = *FindProcess(job, it->second);
      absent.process = it->second;
      if (found.guessed) absent.at_most = Certainty::kLikely;
      absent.gone = HowProcessEnded(job, it->second);
      absent.gone_since_ns = process.ended_ns;
      absent.silent = process.liveness == Liveness::kSilent;
      absent.stale = IsStale(job, it->second);
      if (absent.gone == Gone::kNo && !IsFresh(job, it->second)) {
        absent.at_most = Certainty::kPossible;
      }
    }
    call->absents.push_back(absent);
  }
  if (nameless.empty()) return;
  call->missing_evidence.push_back(
      absl::StrCat("no known process can be ", RanksInWords(nameless),
                   " of the communicator: not started, without the library, or on a host ",
                   job.offline ? "without its segments here" : "without an agent"));
}

int64_t SinceOf(const StuckCall& call) {
  int64_t first = INT64_MAX, last = 0;
  for (const Waiter& w : call.waiters) {
    first = std::min(first, w.wait.since_ns);
    last = std::max(last, w.wait.since_ns);
  }
  return call.absents.empty() ? last : first;
}

}  // namespace

void FindStuckCreation(const JobState& job, const Communicator& comm,
                       std::vector<StuckCall>* calls) {
  StuckCall call;
  call.kind = StuckCall::Kind::kCreation;
  call.communicator = &comm;
  AddMembers(job, comm, &call);
  if (call.waiters.empty()) return;
  AddNeverCame(job, comm, &call);
  call.call.op = CreatingCall(job, comm);
  call.since_ns = SinceOf(call);
  if (comm.other_size != 0) {
    call.evidence.push_back(absl::StrCat("the ranks disagree on the size: some passed ", comm.size,
                                         ", some ", comm.other_size));
  }
  calls->push_back(std::move(call));
}

}  // namespace rollcall
