// SPDX-License-Identifier: Apache-2.0
#include "daemon/rules/thread_race.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

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

// Leaves out the turns of threads of which one waits for the other.
size_t CountTurns(const JobState& job, const RaceSide& side) {
  const LazyVector<CallRecord>& records = side.member->records;
  size_t turns = 0;
  for (size_t i = 1; i < std::min(side.at, records.size()); ++i) {
    turns += MayRace(job, side.member->process, records[i].thread, records[i - 1].thread);
  }
  return turns;
}

// The racing thread of the rank that has its turn at the divergence, or 0.
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

// Whether the process has made both calls, each by a thread of its own for which no thread waits.
bool AreUnordered(const JobState& job, const Member& a, uint64_t a_position, const Member& b,
                  uint64_t b_position) {
  const CallRecord* first = FindCollective(a, a_position);
  const CallRecord* second = FindCollective(b, b_position);
  if (first == nullptr || second == nullptr) return false;
  return MayRace(job, a.process, first->thread, second->thread);
}

// A call in which a process waits.
struct OpenPlace {
  int32_t process = -1;
  size_t call = 0;    // index into the stuck calls
  size_t waiter = 0;  // index into its waiters
};

bool IsBefore(const OpenPlace& a, const OpenPlace& b) {
  return std::tie(a.process, a.call, a.waiter) < std::tie(b.process, b.call, b.waiter);
}

// The open collectives by the processes that wait in them: all ranks of a large job may wait in two
// calls each.
class OpenCalls {
 public:
  explicit OpenCalls(const StuckCalls& calls) {
    for (size_t i = 0; i < calls.size(); ++i) {
      const StuckCall& call = *calls[i];
      if (!IsOpenCollective(call)) continue;
      by_position_.try_emplace({call.communicator->id, call.position}, i);
      for (size_t n = 0; n < call.waiters.size(); ++n) {
        places_.push_back({call.waiters[n].process, i, n});
      }
    }
    std::sort(places_.begin(), places_.end(), IsBefore);
  }

  // nullopt if no such call is open.
  std::optional<size_t> Find(uint64_t communicator, uint64_t position) const {
    const auto at = by_position_.find({communicator, position});
    return at == by_position_.end() ? std::nullopt : std::make_optional(at->second);
  }

  // The first place of the process in each call.
  std::vector<OpenPlace> PlacesOf(int32_t process) const {
    std::vector<OpenPlace> first;
    const OpenPlace wanted = {process, 0, 0};
    for (auto at = std::lower_bound(places_.begin(), places_.end(), wanted, IsBefore);
         at != places_.end() && at->process == process; ++at) {
      if (first.empty() || first.back().call != at->call) first.push_back(*at);
    }
    return first;
  }

 private:
  std::map<std::pair<uint64_t, uint64_t>, size_t> by_position_;
  std::vector<OpenPlace> places_;
};

// By index of another call: its waiters whose processes wait in this one, too, each with its waiter
// here.
using SharedWaiters = std::map<size_t, std::vector<std::pair<const Waiter*, const Waiter*>>>;

SharedWaiters FindSharedWaiters(const StuckCalls& calls, const OpenCalls& open,
                                const StuckCall& call) {
  SharedWaiters shared;
  for (const Waiter& waiter : call.waiters) {
    for (const OpenPlace& place : open.PlacesOf(waiter.process)) {
      const StuckCall& other = *calls[place.call];
      if (other.communicator == call.communicator) continue;
      shared[place.call].emplace_back(&waiter, &other.waiters[place.waiter]);
    }
  }
  return shared;
}

// The ranks on whose devices both calls are open; empty if something orders them.
std::vector<Waiter> OnOneDevice(const JobState& job, const StuckCall& call, const StuckCall& other,
                                const SharedWaiters::mapped_type& waiters) {
  std::vector<Waiter> shared;
  bool is_unordered = false;
  for (const auto& [a, b] : waiters) {
    const Member* mine = FindMember(*call.communicator, a->rank);
    const Member* theirs = FindMember(*other.communicator, b->rank);
    if (mine == nullptr || theirs == nullptr || mine->device != theirs->device) continue;
    shared.push_back(*a);
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

void WeighUnordered(const JobState& job, const StuckCalls& calls, const OpenCalls& open,
                    Verdict* verdict) {
  const std::optional<size_t> at = open.Find(verdict->communicator, verdict->position);
  if (!at) return;
  const StuckCall& mine = *calls[*at];
  for (const auto& [index, waiters] : FindSharedWaiters(calls, open, mine)) {
    const StuckCall& other = *calls[index];
    const std::vector<Waiter> shared = OnOneDevice(job, mine, other, waiters);
    if (shared.size() < 2) continue;
    BlameShared(job, mine, shared, verdict);
    verdict->certainty = std::min(verdict->certainty, Certainty::kLikely);
    verdict->beside = absl::StrCat(OpInWords(other.call.op), " #", other.position, " on ",
                                   CommunicatorInWords(job, *other.communicator));
    verdict->missing_evidence.push_back(
        absl::StrCat("which call holds the other up: ", verdict->beside,
                     " is open on the same devices, another thread has made it, and nothing orders "
                     "the two"));
    return;
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

void WeighUnorderedCalls(const JobState& job, const StuckCalls& calls,
                         std::vector<Verdict>* verdicts) {
  const auto is_stalled = [](const Verdict& v) { return v.cause == Cause::kStalledInFlight; };
  if (std::none_of(verdicts->begin(), verdicts->end(), is_stalled)) return;
  const OpenCalls open(calls);
  for (Verdict& verdict : *verdicts) {
    if (is_stalled(verdict)) WeighUnordered(job, calls, open, &verdict);
  }
}

}  // namespace rollcall
