// FindStuckCalls(): collectives that wait for ranks which have not entered them,
// or which have gone while they were inside.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "daemon/rules/absence.h"
#include "daemon/rules/rank_map.h"
#include "daemon/sentences.h"

namespace rollcall {
namespace {

// Members that count, and how far the last of them has come.
struct Front {
  std::vector<Waiter> waiters;
  uint64_t least_entered = UINT64_MAX;
};

Front FrontOf(const JobState& job, const Communicator& comm) {
  Front front;
  front.waiters = WaitersOf(job, comm);
  for (const auto& [rank, member] : comm.members) {
    if (!InRange(comm, rank) || member.state == MemberState::kFailed) continue;
    front.least_entered = std::min(front.least_entered, member.entered);
  }
  return front;
}

Absent MakeAbsent(const JobState& job, int32_t rank, const Member& member) {
  Absent absent;
  absent.rank = rank;
  absent.process = member.process;
  absent.gone = HowGone(job, member);
  if (absent.gone != Gone::kNo) absent.gone_since_ns = GoneSince(job, member);
  const bool ended = HowProcessEnded(job, member.process) != Gone::kNo;
  if (!ended && !IsFresh(job, member.process)) absent.at_most = Certainty::kPossible;
  return absent;
}

// Held up itself in an earlier call, that all have entered: not the one to blame here.
bool IsStuckEarlier(const JobState& job, const Communicator& comm, const Member& member) {
  const std::optional<Wait> wait = WaitOf(job, comm, member);
  return wait && wait->evidence == Evidence::kShown;
}

void AddNotEntered(const JobState& job, const Communicator& comm, Absence* absence) {
  for (const auto& [rank, member] : comm.members) {
    if (!InRange(comm, rank) || member.state == MemberState::kFailed) continue;
    if (member.entered != absence->position || IsStuckEarlier(job, comm, member)) continue;
    absence->absents.push_back(MakeAbsent(job, rank, member));
  }
}

// Ranks that are gone though they have not finished the call. One that left in
// good order is believed to have finished unless its markers say otherwise.
void AddGoneInside(const JobState& job, const Communicator& comm, Absence* absence) {
  for (const auto& [rank, member] : comm.members) {
    if (!InRange(comm, rank) || member.entered <= absence->position) continue;
    const bool shown = member.has_markers && member.finished <= absence->position;
    const bool finished = member.has_markers && !shown;
    Absent absent = MakeAbsent(job, rank, member);
    absent.came = true;
    // A rank inside CommDestroy with open calls waits like the others.
    const bool waits = member.state == MemberState::kFinalizing;
    if (absent.gone == Gone::kNo || finished) continue;
    if (absent.gone == Gone::kLeft && (waits || !shown)) continue;
    if (!shown) absent.at_most = Certainty::kLikely;
    absence->absents.push_back(absent);
  }
}

// Ranks that nothing has been heard of: a gap in what is known rather than in
// what was done, so they are only ever blamed as possible.
void AddUnknown(const JobState& job, const Communicator& comm, Absence* absence) {
  const std::vector<int32_t> unknown = UnknownRanks(comm);
  if (unknown.empty()) return;
  const auto processes = ProcessesOfRanks(job, comm, unknown);
  for (const int32_t rank : unknown) {
    Absent absent;
    absent.rank = rank;
    const auto it = processes.find(rank);
    if (it != processes.end()) absent.process = it->second;
    absent.gone = HowProcessEnded(job, absent.process);
    absent.at_most = Certainty::kPossible;
    absence->absents.push_back(absent);
  }
  absence->missing_evidence.push_back(
      absl::StrCat("nothing has been heard of ", RanksInWords(unknown), " on ",
                   CommunicatorInWords(comm.id, comm.name), ", though it has formed"));
}

void KeepWaiters(const Front& front, Evidence at_least, Absence* absence) {
  for (const Waiter& w : front.waiters) {
    if (w.wait.call >= absence->position && w.wait.evidence >= at_least) {
      absence->waiters.push_back(w);
    }
  }
}

uint64_t FirstOpenCall(const Front& front) {
  uint64_t call = UINT64_MAX;
  for (const Waiter& w : front.waiters) {
    if (w.wait.evidence != Evidence::kIndirect) call = std::min(call, w.wait.call);
  }
  return call;
}

Absence Take(const JobState& job, const Communicator& comm, const Front& front) {
  Absence absence;
  absence.communicator = &comm;
  absence.position = front.least_entered;
  KeepWaiters(front, Evidence::kIndirect, &absence);
  if (!absence.waiters.empty()) AddNotEntered(job, comm, &absence);
  if (absence.absents.empty()) {
    // All have entered what is waited in: who has gone, or was never heard of?
    absence.position = FirstOpenCall(front);
    absence.waiters.clear();
    if (absence.position == UINT64_MAX) return absence;
    KeepWaiters(front, Evidence::kInferred, &absence);
  }
  AddGoneInside(job, comm, &absence);
  AddUnknown(job, comm, &absence);
  absence.call = CallAt(comm, absence.position);
  return absence;
}

}  // namespace

std::vector<Absence> FindStuckCalls(const JobState& job) {
  std::vector<Absence> result;
  for (const auto& [id, comm] : job.communicators) {
    if (comm.size <= 1 || comm.size > kMaxRanks || !HasFormed(comm)) continue;
    const Front front = FrontOf(job, comm);
    if (front.waiters.empty()) continue;
    Absence absence = Take(job, comm, front);
    if (!absence.absents.empty() && !absence.waiters.empty()) result.push_back(std::move(absence));
  }
  return result;
}

}  // namespace rollcall
