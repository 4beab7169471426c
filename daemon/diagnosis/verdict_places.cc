// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/verdict_places.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "daemon/model/progress.h"
#include "daemon/words/places.h"
#include "daemon/words/process_roles.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

constexpr size_t kMostPlaces = 64;
constexpr size_t kMostPlacedRanks = 64;  // waiting ranks, for one with stacks
constexpr size_t kDescribedPlaces = 8;

// Stacks of before the wait prove nothing, and a process that has ended stands nowhere.
const StackPlace* FindFreshPlace(const JobState& job, int32_t process, const Verdict& verdict) {
  const Process* known = FindProcess(job, process);
  if (known == nullptr || HasEnded(*known) || known->stacks_ns == 0) return nullptr;
  if (known->stacks_ns < verdict.since_ns) return nullptr;
  return &known->place;
}

}  // namespace

void AddPlaces(const JobState& job, Verdict* verdict) {
  verdict->places.assign(std::min(kMostPlaces, verdict->culprits.size()), StackPlace());
  bool any = false;
  for (size_t i = 0; i < verdict->places.size(); ++i) {
    const Culprit& culprit = verdict->culprits[i];
    if (!culprit.ending.empty() && culprit.ending != kFinalizing) continue;
    const StackPlace* place = FindFreshPlace(job, culprit.process, *verdict);
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
  const std::vector<int32_t>& waiting = verdict->waiting_processes;
  for (size_t i = 0; i < std::min(waiting.size(), kMostPlacedRanks); ++i) {
    const StackPlace* place = FindFreshPlace(job, waiting[i], *verdict);
    if (place == nullptr || place->functions.empty()) continue;
    verdict->waiting_place = *place;
    return;
  }
}

}  // namespace rollcall
