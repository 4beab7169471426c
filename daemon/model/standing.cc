// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/standing.h"

#include <algorithm>
#include <utility>

#include "daemon/model/waits/idle_loops.h"
#include "daemon/model/waits/wait_frames.h"

namespace rollcall {
namespace {

bool Spins(const StandPlace& place) { return HasTrait(place.in.kind, stands::kSpins); }

// A thread of a server that handles a request is in the program. A stage of a graph of Ray may wait
// for its input.
bool HandlesARequest(const StandThread& thread) {
  const bool is_at_work =
      !thread.place.at.empty() || thread.place.in.kind == StandKind::kRayChannel;
  return is_at_work && HasWait(thread.place.functions, waits::kRequest);
}

}  // namespace

StandPlace::StandPlace(StackPlace place, absl::string_view wait_channel)
    : StackPlace(std::move(place)), in(StandsIn(*this, wait_channel)) {
  is_idle = in.kind == StandKind::kIdle || FindIdleLoop(functions) != nullptr;
}

StandFunction WaitOfMain(const Standing& standing) {
  if (standing.state == 'D') return {StandKind::kStorage, ""};
  return standing.place.in;
}

bool WaitsWithTheCpu(const Standing& standing) {
  return Spins(standing.place) ||
         std::any_of(standing.threads.begin(), standing.threads.end(),
                     [](const StandThread& thread) { return Spins(thread.place); });
}

const StandThread* FindHandler(const Standing& standing) {
  const auto& threads = standing.threads;
  const auto at = std::find_if(threads.begin(), threads.end(), HandlesARequest);
  return at == threads.end() ? nullptr : &*at;
}

bool IsHeldUpInARequest(const StandPlace& place) {
  return HasTrait(place.in.kind, stands::kNoWork) && HasWait(place.functions, waits::kRequest);
}

const StandPlace* FindHandler(const StandingChild& child) {
  const auto& places = child.places;
  if (places.empty() || !places.front().is_idle) return nullptr;
  const auto at = std::find_if(places.begin() + 1, places.end(), IsHeldUpInARequest);
  return at == places.end() ? nullptr : &*at;
}

}  // namespace rollcall
