// SPDX-License-Identifier: Apache-2.0
#include "daemon/rules/stuck_call.h"

#include <algorithm>

namespace rollcall {
namespace {

void AddErrored(const JobState& job, const Communicator& comm, std::vector<StuckCall>* calls) {
  std::vector<Errored> errored;
  for (const auto& [rank, member] : comm.members) {
    if (!InRange(comm, rank)) continue;
    if (member.state == MemberState::kFailed) continue;  // its creating call: FindStuckCreation()
    int32_t code = member.async_error;
    // A call that failed at once has no position: the rank has not entered it.
    if (code == 0 && !member.records.empty()) {
      const CallRecord& newest = member.records.back();
      if (!IsAccepted(newest) && newest.returned_ns != 0) code = newest.result;
    }
    if (code == 0) continue;
    if (MayHaveDied(HowProcessEnded(job, member.process))) continue;
    errored.push_back({rank, member.process, code});
  }
  for (StuckCall& call : *calls) call.errored = errored;
}

// Without markers a rank may wait in its last call on this communicator, although it has
// made later calls on others. If NCCL has reported an error, this call is stuck.
void AddUnseenWait(const Communicator& comm, const MemberSummary& summary,
                   std::vector<StuckCall>* calls) {
  if (summary.waiters.empty() || summary.least_entered == 0) return;
  StuckCall call;
  call.communicator = &comm;
  call.position = summary.least_entered - 1;
  call.waiters = summary.waiters;
  for (const Waiter& w : call.waiters) call.since_ns = std::max(call.since_ns, w.wait.since_ns);
  call.call = CallAt(comm, call.position);
  calls->push_back(std::move(call));
}

bool MayHaveError(const Member& member) {
  return member.async_error != 0 || (!member.records.empty() && !IsAccepted(member.records.back()));
}

// The least advanced positions: over members with fresh reports, and over the other members.
struct Fronts {
  bool any_unheard = false;
  uint64_t heard = UINT64_MAX, unheard = UINT64_MAX;  // the least number of calls entered
  // The first call that a rank with fresh reports has not finished: no later call has ended.
  uint64_t open = UINT64_MAX;
};

uint64_t FirstOpen(const Member& member, const std::optional<Wait>& wait) {
  if (wait) return wait->position;
  return member.has_markers ? std::min(member.finished, member.entered) : member.entered;
}

void UpdateFronts(const Member& member, const std::optional<Wait>& wait, bool heard,
                  Fronts* fronts) {
  fronts->any_unheard = fronts->any_unheard || !heard;
  uint64_t* least = heard ? &fronts->heard : &fronts->unheard;
  *least = std::min(*least, member.entered);
  if (heard) fronts->open = std::min(fronts->open, FirstOpen(member, wait));
}

// A wait is over once its call has ended. A rank whose agent has sent too few ticks proves nothing.
bool StillWaits(const JobState& job, const Waiter& waiter, const Fronts& fronts) {
  if (IsHeard(job, waiter.process)) return true;
  const AgentState* agent = FindAgent(job, waiter.process);
  return waiter.wait.position >= fronts.open && (agent == nullptr || agent->is_settled);
}

uint64_t FirstWaitedFor(const std::vector<Waiter>& waiters) {
  uint64_t first = UINT64_MAX;
  for (const Waiter& w : waiters) first = std::min(first, w.wait.position);
  return first;
}

// Takes account of ranks with old reports: they may have made more calls since.
void SkipUnheard(const JobState& job, const Fronts& fronts, MemberSummary* summary) {
  std::vector<Waiter>& waiters = summary->waiters;
  waiters.erase(std::remove_if(waiters.begin(), waiters.end(),
                               [&](const Waiter& w) { return !StillWaits(job, w, fronts); }),
                waiters.end());
  const bool heard_one_is_absent =
      std::any_of(waiters.begin(), waiters.end(),
                  [&](const Waiter& w) { return w.wait.position >= fronts.heard; });
  summary->least_entered = fronts.heard;
  if (heard_one_is_absent || waiters.empty() || fronts.unheard >= fronts.heard) return;
  summary->least_entered = std::max(fronts.unheard, FirstWaitedFor(waiters));
}

MemberSummary SummarizeMembers(const JobState& job, const Communicator& comm) {
  MemberSummary summary;
  Fronts fronts;
  summary.waiters.reserve(comm.members.size());
  for (const auto& [rank, member] : comm.members) {
    const bool failed = member.state == MemberState::kFailed;
    if (!failed && member.state != MemberState::kInitializing) summary.has_formed = true;
    if (!InRange(comm, rank)) continue;
    if (member.p2p_entered != 0) summary.uses_p2p = true;
    if (member.state > MemberState::kReady) summary.may_tear_down = true;
    if (MayHaveError(member)) summary.may_have_errors = true;
    const Process* process = FindProcess(job, member.process);
    if (member.concurrent_use || (process != nullptr && process->blocked.size() > 1)) {
      summary.may_be_used_concurrently = true;
    }
    const std::optional<Wait> wait = FindWait(job, comm, member);
    if (wait) summary.waiters.push_back({rank, member.process, *wait});
    if (!failed) UpdateFronts(member, wait, IsHeard(job, member.process), &fronts);
  }
  summary.least_entered = fronts.heard;
  if (fronts.any_unheard) SkipUnheard(job, fronts, &summary);
  return summary;
}

// True if two threads of one process are inside calls on the communicator now.
bool HasTwoInside(const JobState& job, const Communicator& comm, const Member& member) {
  const Process* process = FindProcess(job, member.process);
  if (process == nullptr) return false;
  uint32_t thread = 0;
  for (const BlockedCall& blocked : process->blocked) {
    const CallKind kind = OpKind(blocked.op);
    if (kind != CallKind::kCollective && kind != CallKind::kP2p) continue;
    if (IsMpiMessage(blocked.op)) continue;
    if (blocked.communicator != comm.id) continue;
    if (thread != 0 && blocked.thread != thread) return true;
    thread = blocked.thread;
  }
  return false;
}

// Checks only the newest records: an older overlap did not stop the job.
bool OverlapsLately(const Member& member) {
  constexpr size_t kLately = 32;
  const LazyVector<CallRecord>& records = member.records;
  const size_t begin = records.size() > kLately ? records.size() - kLately : 0;
  for (size_t i = begin; i + 1 < records.size(); ++i) {
    if (Overlap(records[i], records[i + 1])) return true;
  }
  return false;
}

void AddConcurrent(const JobState& job, const Communicator& comm, std::vector<StuckCall>* calls) {
  std::vector<int32_t> concurrent;
  for (const auto& [rank, member] : comm.members) {
    if (!InRange(comm, rank)) continue;
    if ((member.concurrent_use && OverlapsLately(member)) || HasTwoInside(job, comm, member)) {
      concurrent.push_back(rank);
    }
  }
  for (StuckCall& call : *calls) call.concurrent = concurrent;
}

}  // namespace

const Member* FindMember(const Communicator& comm, int32_t rank) {
  const auto it = comm.members.find(rank);
  return it == comm.members.end() ? nullptr : &it->second;
}

CallArgs CallAt(const Communicator& comm, uint64_t position) {
  for (const auto& [rank, member] : comm.members) {
    const CallRecord* record = FindCollective(member, position);
    if (record != nullptr) return record->args;
  }
  return {};
}

Absent MakeAbsent(const JobState& job, int32_t rank, const Member& member, Lack lack) {
  Absent absent;
  absent.rank = rank;
  absent.process = member.process;
  absent.lack = lack;
  absent.gone = HowGone(job, member);
  absent.failed = HasFailed(job, member);
  if (absent.gone != Gone::kNo) absent.gone_since_ns = GoneSince(job, member);
  const Process* process = FindProcess(job, member.process);
  absent.is_sibling = process != nullptr && process->holds_several;
  absent.silent = process != nullptr && process->liveness == Liveness::kSilent;
  absent.stale = IsStale(job, member.process);
  const bool ended = HowProcessEnded(job, member.process) != Gone::kNo;
  if (!ended && !IsFresh(job, member.process)) absent.at_most = Certainty::kPossible;
  // A thread waits for a GPU. Without markers nothing shows whether it is this rank's.
  const bool may_wait = absent.is_sibling && !member.has_markers && GpuWaitSince(*process) != 0;
  if (may_wait) absent.at_most = Certainty::kPossible;
  return absent;
}

Absent MakeUnheard(const JobState& job, const UnknownMember& unknown) {
  Absent absent;
  absent.rank = unknown.ranks.first;
  absent.ranks = unknown.ranks.last - unknown.ranks.first + 1;
  absent.lack = Lack::kUnheard;
  absent.at_most = Certainty::kPossible;
  if (unknown.process < 0) return absent;
  absent.process = unknown.process;
  absent.gone = HowProcessEnded(job, absent.process);
  absent.silent = FindProcess(job, absent.process)->liveness == Liveness::kSilent;
  absent.stale = IsStale(job, absent.process);
  return absent;
}

// True if a rank with fresh reports waits in the call or is absent from it.
bool HasFreshReport(const JobState& job, const StuckCall& call) {
  return std::any_of(call.waiters.begin(), call.waiters.end(),
                     [&](const Waiter& w) { return IsHeard(job, w.process); }) ||
         std::any_of(call.absents.begin(), call.absents.end(), [&](const Absent& a) {
           return FindProcess(job, a.process) != nullptr && IsHeard(job, a.process);
         });
}

// True if all that wait in the call are stopped: then the job is suspended, and no rank waits.
bool AreAllSuspended(const JobState& job, const StuckCall& call) {
  return !call.waiters.empty() &&
         std::all_of(call.waiters.begin(), call.waiters.end(),
                     [&job](const Waiter& w) { return IsSuspended(job, w.process); });
}

// gloo's ranks connect to one another, by the addresses that they find in the store. Where the
// addresses of an older group with the same number are there, a rank ends the creation without its
// members, and others may still be inside it.
void AddUnformed(const JobState& job, const Communicator& comm, RankFinder* finder,
                 std::vector<StuckCall>* calls) {
  if (comm.kind != CommKind::kGloo || UnknownRanks(comm).empty()) return;
  const size_t begin = calls->size();
  FindStuckCreation(job, comm, finder, calls);
  for (size_t i = begin; i < calls->size(); ++i) {
    for (Absent& absent : (*calls)[i].absents) {
      absent.at_most = std::min(absent.at_most, Certainty::kLikely);
    }
  }
}

std::vector<StuckCall> FindStuckCalls(const JobState& job, const Communicator& comm,
                                      RankFinder* finder) {
  std::vector<StuckCall> calls;
  if (comm.size <= 1 || comm.size > kMaxRanks) return calls;
  const MemberSummary summary = SummarizeMembers(job, comm);
  if (!summary.has_formed) FindStuckCreation(job, comm, finder, &calls);
  if (summary.has_formed) FindStuckCollectives(job, comm, summary, finder, &calls);
  if (summary.has_formed) AddUnformed(job, comm, finder, &calls);
  if (comm.counts_messages) FindStuckMessages(job, comm, finder, &calls);
  if (summary.uses_p2p && MayHaveP2pRecords(comm)) FindStuckP2p(job, comm, finder, &calls);
  if (summary.may_tear_down) FindStuckTeardown(job, comm, &calls);
  if (calls.empty() && summary.may_have_errors) AddUnseenWait(comm, summary, &calls);
  calls.erase(std::remove_if(calls.begin(), calls.end(),
                             [&](const StuckCall& call) {
                               return !HasFreshReport(job, call) || AreAllSuspended(job, call);
                             }),
              calls.end());
  if (calls.empty()) return calls;
  if (summary.may_have_errors) AddErrored(job, comm, &calls);
  if (summary.may_be_used_concurrently) AddConcurrent(job, comm, &calls);
  return calls;
}

std::vector<int64_t> NewestCallTimes(const JobState& job) {
  std::vector<int64_t> newest(job.processes.size());
  for (const auto& [id, comm] : job.communicators) {
    for (const auto& [rank, member] : comm.members) {
      if (FindProcess(job, member.process) == nullptr) continue;
      int64_t& known_ns = newest[static_cast<size_t>(member.process)];
      if (!member.records.empty()) known_ns = std::max(known_ns, member.records.back().entered_ns);
      if (member.messages != nullptr) known_ns = std::max(known_ns, member.messages->moved_ns);
    }
  }
  return newest;
}

bool IsLeftByFew(const StuckCall& call) {
  if (call.kind != StuckCall::Kind::kCollective || call.waiters.size() < 2) return false;
  if (call.absents.empty() || call.absents.size() >= call.waiters.size()) return false;
  return std::all_of(call.absents.begin(), call.absents.end(), [](const Absent& a) {
    return a.lack == Lack::kNotEntered && a.ranks == 1 && a.gone == Gone::kNo && !a.silent &&
           !a.stale && a.process >= 0;
  });
}

}  // namespace rollcall
