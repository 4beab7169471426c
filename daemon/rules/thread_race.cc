// SPDX-License-Identifier: Apache-2.0
#include "daemon/rules/thread_race.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/model/calling_threads.h"
#include "daemon/model/progress.h"
#include "daemon/words/alignment.h"
#include "daemon/words/communicator_names.h"
#include "daemon/words/evidence.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

constexpr size_t kMostSearched = 256;    // ranks
constexpr size_t kMostCompared = 64;     // calls from the divergence on
constexpr size_t kDescribedRanks = 4;    // with a line of evidence
constexpr size_t kDescribedThreads = 4;  // of a rank

using Calls = std::vector<const CallRecord*>;

// A rank that stands for its side, with the calls of its records.
struct RaceSide {
  const Member* member = nullptr;
  std::vector<RacingThread> racing;
  Calls calls;    // from the divergence on
  size_t at = 0;  // index of the first of them in Member::records
};

// A thread without a known name, as in files, may be one for which another one waits.
bool Races(const RaceSide& side, uint32_t thread) {
  return std::any_of(side.racing.begin(), side.racing.end(), [thread](const RacingThread& racing) {
    return racing.thread == thread && !racing.name.empty();
  });
}

RaceSide LookAt(const JobState& job, const Member& member, uint64_t position) {
  RaceSide side;
  side.member = &member;
  side.racing = FindRacingThreads(job, member);
  for (size_t i = 0; i < member.records.size(); ++i) {
    const CallRecord& record = member.records[i];
    if (record.position < position || !TakesPosition(record)) continue;
    if (side.calls.empty()) side.at = i;
    if (side.calls.size() < kMostCompared) side.calls.push_back(&record);
  }
  return side;
}

// Threads that have taken so many turns, in the same order on all ranks, have an order that
// Rollcall does not see: one waits for the other.
constexpr size_t kManyTurns = 16;

// Without the turns of threads of which one waits for the other.
size_t CountTurns(const JobState& job, const RaceSide& side) {
  const LazyVector<CallRecord>& records = side.member->records;
  size_t turns = 0;
  for (size_t i = 1; i < std::min(side.at, records.size()); ++i) {
    turns += MayRace(job, side.member->process, records[i].thread, records[i - 1].thread);
  }
  return turns;
}

// The racing thread of the rank that has its turn at the divergence; 0: none.
uint32_t TurnOf(const JobState& job, const RaceSide& side) {
  if (side.calls.empty()) return 0;
  const LazyVector<CallRecord>& records = side.member->records;
  const uint32_t thread = side.calls.front()->thread;
  if (!Races(side, thread) || CountTurns(job, side) >= kManyTurns) return 0;
  const bool has_turned = side.at > 0 && records[side.at - 1].thread != thread;
  const bool turns = side.at + 1 < records.size() && records[side.at + 1].thread != thread;
  return has_turned || turns ? thread : 0;
}

Calls Without(const RaceSide& side, uint32_t thread) {
  Calls calls = side.calls;
  calls.erase(std::remove_if(calls.begin(), calls.end(),
                             [thread](const CallRecord* call) { return call->thread == thread; }),
              calls.end());
  return calls;
}

Calls Only(const RaceSide& side, uint32_t thread) {
  Calls calls = side.calls;
  calls.erase(std::remove_if(calls.begin(), calls.end(),
                             [thread](const CallRecord* call) { return call->thread != thread; }),
              calls.end());
  return calls;
}

// Whether one of the two begins with the other.
bool GoTogether(const Calls& a, const Calls& b) {
  const size_t common = std::min(a.size(), b.size());
  return std::equal(
      a.begin(), a.begin() + static_cast<std::ptrdiff_t>(common), b.begin(),
      [](const CallRecord* x, const CallRecord* y) { return SameCall(x->args, y->args); });
}

// Whether the calls of both ranks are the same without those of this thread of the first one, and
// of its like on the other one.
bool ExplainsTurn(const JobState& job, const RaceSide& turning, const RaceSide& other) {
  const uint32_t thread = TurnOf(job, turning);
  if (thread == 0) return false;
  std::vector<uint32_t> likes = {0};  // the other rank's thread may not have made a call yet
  for (const RacingThread& racing : other.racing) likes.push_back(racing.thread);
  return std::any_of(likes.begin(), likes.end(), [&](uint32_t like) {
    return GoTogether(Without(turning, thread), Without(other, like)) &&
           GoTogether(Only(turning, thread), like == 0 ? Calls() : Only(other, like));
  });
}

// The first rank of the side that has a record of the divergence.
const Member* Representative(const Communicator& comm, const Side& side, uint64_t position) {
  for (size_t i = 0; i < std::min(side.ranks.size(), kMostSearched); ++i) {
    const Member* member = FindMember(comm, side.ranks[i]);
    if (member != nullptr && FindCollective(*member, position) != nullptr) return member;
  }
  return nullptr;
}

bool ExplainsAll(const JobState& job, const Communicator& comm, const Divergence& divergence) {
  std::vector<RaceSide> sides;
  for (const Side& side : divergence.sides) {
    const Member* member = Representative(comm, side, divergence.position);
    if (member == nullptr) return false;
    sides.push_back(LookAt(job, *member, divergence.position));
  }
  return std::all_of(sides.begin() + 1, sides.end(), [&](const RaceSide& side) {
    return ExplainsTurn(job, side, sides[0]) || ExplainsTurn(job, sides[0], side);
  });
}

std::string RacingInWords(const Process* process, const Member& member,
                          const RacingThread& racing) {
  const CallRecord& newest = member.records[racing.newest];
  const bool is_known = process != nullptr && newest.site != 0 &&
                        static_cast<size_t>(newest.site) <= process->sites.size();
  return absl::StrCat(racing.name.empty() ? absl::StrCat("thread ", racing.thread)
                                          : absl::StrCat("thread \"", racing.name, "\""),
                      " made ", OpInWords(newest.args.op), " #", newest.position,
                      is_known ? " at " + process->sites[newest.site - 1] : "");
}

std::string ThreadsInWords(const JobState& job, const Member& member, int32_t rank,
                           const std::vector<RacingThread>& racing) {
  const Process* process = FindProcess(job, member.process);
  std::vector<std::string> threads;
  for (size_t i = 0; i < std::min(racing.size(), kDescribedThreads); ++i) {
    threads.push_back(RacingInWords(process, member, racing[i]));
  }
  return absl::StrCat("rank ", PublicRank(job, member.process, rank), ": ",
                      absl::StrJoin(threads, ", "));
}

// The agent reads the names of threads beside their calls, and a busy host makes it late.
bool AwaitsNames(const JobState& job, const Member& member,
                 const std::vector<RacingThread>& racing) {
  const Process* process = FindProcess(job, member.process);
  return !job.offline && process != nullptr && process->liveness == Liveness::kAlive &&
         std::any_of(racing.begin(), racing.end(),
                     [](const RacingThread& thread) { return thread.name.empty(); });
}

bool IsOpenCollective(const StuckCall& call) {
  return call.kind == StuckCall::Kind::kCollective && call.absents.empty();
}

// Whether the process has made both calls, each by a thread of its own for which nobody waits.
bool AreUnordered(const JobState& job, const Member& a, uint64_t a_position, const Member& b,
                  uint64_t b_position) {
  const CallRecord* first = FindCollective(a, a_position);
  const CallRecord* second = FindCollective(b, b_position);
  if (first == nullptr || second == nullptr) return false;
  return MayRace(job, a.process, first->thread, second->thread);
}

// The ranks on whose devices both calls are open; none: something orders them.
std::vector<Waiter> FindShared(const JobState& job, const StuckCall& call, const StuckCall& other) {
  std::vector<Waiter> shared;
  bool is_unordered = false;
  for (const Waiter& a : call.waiters) {
    const auto b = std::find_if(other.waiters.begin(), other.waiters.end(),
                                [&](const Waiter& w) { return w.process == a.process; });
    if (b == other.waiters.end()) continue;
    const Member* mine = FindMember(*call.communicator, a.rank);
    const Member* theirs = FindMember(*other.communicator, b->rank);
    if (mine == nullptr || theirs == nullptr || mine->device != theirs->device) continue;
    shared.push_back(a);
    is_unordered = is_unordered || AreUnordered(job, *mine, call.position, *theirs, other.position);
  }
  return is_unordered ? shared : std::vector<Waiter>();
}

// Which of them has its kernels in the wrong order is not known: the markers show a call as started
// before its kernel has room.
void BlameShared(const JobState& job, const StuckCall& call, const std::vector<Waiter>& shared,
                 Verdict* verdict) {
  if (!verdict->culprits.empty()) return;
  for (const Waiter& w : shared) {
    const Member* member = FindMember(*call.communicator, w.rank);
    verdict->culprits.push_back(MakeCulprit(job, w.process, w.rank, member));
  }
}

}  // namespace

ThreadRace FindThreadRace(const JobState& job, const Communicator& comm,
                          const Divergence& divergence) {
  ThreadRace race;
  size_t searched = 0;
  for (const Side& side : divergence.sides) {
    for (const int32_t rank : side.ranks) {
      const Member* member = FindMember(comm, rank);
      if (member == nullptr || ++searched > kMostSearched) continue;
      const std::vector<RacingThread> racing = FindRacingThreads(job, *member);
      if (racing.empty()) continue;
      race.ranks.push_back(rank);
      race.awaits_names = race.awaits_names || AwaitsNames(job, *member, racing);
      if (race.evidence.size() == kDescribedRanks) continue;
      race.evidence.push_back(ThreadsInWords(job, *member, rank, racing));
    }
  }
  if (!race.ranks.empty() && divergence.position_end == 0) {
    race.explains = ExplainsAll(job, comm, divergence);
  }
  return race;
}

void WeighUnorderedCalls(const JobState& job, const StuckCalls& calls, Verdict* verdict) {
  if (verdict->cause != Cause::kStalledInFlight) return;
  const auto mine = std::find_if(calls.begin(), calls.end(), [&](const StuckCall* call) {
    return IsOpenCollective(*call) && call->communicator->id == verdict->communicator &&
           call->position == verdict->position;
  });
  if (mine == calls.end()) return;
  for (const StuckCall* other : calls) {
    if (!IsOpenCollective(*other) || other->communicator == (*mine)->communicator) continue;
    const std::vector<Waiter> shared = FindShared(job, **mine, *other);
    if (shared.size() < 2) continue;
    BlameShared(job, **mine, shared, verdict);
    verdict->certainty = std::min(verdict->certainty, Certainty::kLikely);
    verdict->beside = absl::StrCat(OpInWords(other->call.op), " #", other->position, " on ",
                                   CommunicatorInWords(job, *other->communicator));
    verdict->missing_evidence.push_back(
        absl::StrCat("which call holds the other up: ", verdict->beside,
                     " is open on the same devices, another thread has made it, and nothing orders "
                     "the two"));
    return;
  }
}

}  // namespace rollcall
