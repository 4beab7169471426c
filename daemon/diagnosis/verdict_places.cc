// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/verdict_places.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/diagnosis/members_by_process.h"
#include "daemon/model/calling_threads.h"
#include "daemon/model/progress.h"
#include "daemon/words/places.h"
#include "daemon/words/process_roles.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

constexpr size_t kMostPlaces = 64;
constexpr size_t kMostPlacedRanks = 64;  // waiting ranks, for one with stacks
constexpr size_t kDescribedPlaces = 8;

const StackPlace* FindThreadPlace(const Process& process, const std::vector<uint32_t>& tids) {
  for (const uint32_t tid : tids) {
    for (const ThreadPlace& thread : process.thread_places) {
      if (thread.tid == tid) return &thread.place;
    }
  }
  return nullptr;
}

// A communicator, and its members by their processes.
struct Callers {
  explicit Callers(const Communicator& comm) : communicator(comm), members(comm) {}

  // When the process entered the call in which it waits; 0 if it does not.
  int64_t BeganToWait(int32_t process) const {
    const Member* member = members.Find(process);
    return member == nullptr ? 0 : member->waiting_since_ns;
  }

  const Communicator& communicator;
  MembersByProcess members;
};

// The communicator in whose call the rank waits: in a cycle each has its own.
uint64_t CommunicatorOf(const Verdict& verdict, int32_t rank) {
  if (verdict.cause != Cause::kDeadlock) return verdict.communicator;
  for (const WaitEdge& edge : verdict.chain) {
    const bool is_from = std::find(edge.from.begin(), edge.from.end(), rank) != edge.from.end();
    if (is_from) return edge.communicator;
  }
  return verdict.communicator;
}

class CallersByRank {
 public:
  CallersByRank(const JobState& job, const Verdict& verdict) : job_(job), verdict_(verdict) {}

  // nullptr if the communicator of its call is not known.
  const Callers* Of(int32_t rank) {
    const auto comm = job_.communicators.find(CommunicatorOf(verdict_, rank));
    if (comm == job_.communicators.end()) return nullptr;
    return &known_.emplace(comm->first, comm->second).first->second;
  }

 private:
  const JobState& job_;
  const Verdict& verdict_;
  std::map<uint64_t, Callers> known_;
};

// The place of the thread that makes the rank's calls on the communicator. Stacks of before the
// wait prove nothing, and a process that has ended stands nowhere.
const StackPlace* FindFreshPlace(const JobState& job, const Callers* callers, int32_t process,
                                 int32_t rank, const Verdict& verdict) {
  const Process* known = FindProcess(job, process);
  if (known == nullptr || HasEnded(*known) || known->stacks_ns == 0) return nullptr;
  if (known->stacks_ns < verdict.since_ns) return nullptr;
  if (callers == nullptr) return &known->place;
  // It may have come to the call after the others, and after the sample.
  if (!known->holds_several && known->stacks_ns < callers->BeganToWait(process)) return nullptr;
  const int32_t of_rank = known->holds_several ? rank : kAnyRank;
  const StackPlace* place =
      FindThreadPlace(*known, CallingTids(*known, callers->communicator, of_rank));
  // The place of a process is that of any of its ranks.
  return place == nullptr && !known->holds_several ? &known->place : place;
}

bool MakesCalls(const Process& process, uint32_t tid) {
  return std::any_of(process.blocked.begin(), process.blocked.end(),
                     [tid](const BlockedCall& call) { return call.thread == tid; }) ||
         std::any_of(process.callers.begin(), process.callers.end(),
                     [tid](const CallingThread& caller) { return caller.tid == tid; });
}

// The lines of both threads, where two of them make calls.
void AddThreadPlaces(const JobState& job, Verdict* verdict) {
  if (verdict->cause != Cause::kConcurrentUse || verdict->culprits.empty()) return;
  const Culprit& first = verdict->culprits.front();
  const Process* known = FindProcess(job, first.process);
  if (known == nullptr || known->stacks_ns < verdict->since_ns) return;
  for (const ThreadPlace& thread : known->thread_places) {
    if (!MakesCalls(*known, thread.tid)) continue;
    verdict->thread_places.push_back(thread.place);
    verdict->evidence.push_back(
        absl::StrCat("rank ", first.rank, ": thread ",
                     thread.name.empty() ? absl::StrCat(thread.tid) : thread.name, " is in ",
                     PlaceInWords(thread.place)));
  }
  if (verdict->thread_places.size() < 2) verdict->thread_places.clear();
}

}  // namespace

void AddPlaces(const JobState& job, Verdict* verdict) {
  CallersByRank callers(job, *verdict);
  verdict->places.assign(std::min(kMostPlaces, verdict->culprits.size()), StackPlace());
  bool any = false;
  for (size_t i = 0; i < verdict->places.size(); ++i) {
    const Culprit& culprit = verdict->culprits[i];
    if (!culprit.ending.empty() && culprit.ending != kFinalizing) continue;
    const StackPlace* place =
        FindFreshPlace(job, callers.Of(culprit.rank), culprit.process, culprit.rank, *verdict);
    const std::vector<StackPlace>& others = verdict->standstill.places;
    if (i < others.size() && !others[i].functions.empty()) place = &others[i];
    if (place == nullptr) continue;
    verdict->places[i] = *place;
    any = true;
    const std::string role = RoleAmong(place->functions);
    if (i < kDescribedPlaces && !role.empty()) {
      verdict->evidence.push_back(absl::StrCat("rank ", culprit.rank, " is ", role));
    }
    const std::string words = PlaceInWords(*place);
    if (i < kDescribedPlaces && !words.empty()) {
      verdict->evidence.push_back(absl::StrCat("rank ", culprit.rank, " is in ", words));
    }
  }
  if (!any) verdict->places.clear();
  AddThreadPlaces(job, verdict);
  const std::vector<int32_t>& waiting = verdict->waiting_processes;
  for (size_t i = 0; i < std::min(waiting.size(), kMostPlacedRanks); ++i) {
    const StackPlace* place = FindFreshPlace(job, callers.Of(verdict->waiting_ranks[i]), waiting[i],
                                             verdict->waiting_ranks[i], *verdict);
    if (place == nullptr || place->functions.empty()) continue;
    if (verdict->waiting_place.functions.empty()) verdict->waiting_place = *place;
    if (!verdict->of_communicator) return;
    if (!place->at.empty())
      verdict->waiting_places.push_back({verdict->waiting_ranks[i], place->at});
  }
}

}  // namespace rollcall
