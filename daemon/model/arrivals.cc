// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/arrivals.h"

#include <algorithm>
#include <map>
#include <vector>

namespace rollcall {

void ArrivalWatch::Add(int32_t rank, int32_t size, uint64_t position, int64_t entered_ns) {
  // A sample is enough: from step to step it meets different calls of the step.
  if (position % kEvery != 0) return;
  if (open_.empty()) open_.resize(kOpen);
  Call& call = open_[position / kEvery % kOpen];
  if (call.arrived != 0 && call.position > position) return;
  if (call.arrived == 0 || call.position < position) {
    call = Call();
    call.position = position;
  }
  ++call.arrived;
  if (entered_ns >= call.last_ns) {
    call.before_last_ns = call.last_ns;
    call.last_ns = entered_ns;
    call.last_rank = rank;
  } else {
    call.before_last_ns = std::max(call.before_last_ns, entered_ns);
  }
  if (call.arrived < size) return;
  has_changed_ = true;
  scored_.push_back(call);
  if (scored_.size() > kScored) scored_.erase(scored_.begin());
  call.arrived = 0;
}

Arrivals ArrivalWatch::Score() const {
  Arrivals score;
  score.calls = static_cast<uint32_t>(scored_.size());
  if (scored_.size() < 2) return score;
  std::map<int32_t, uint32_t> last_calls;
  for (const Call& call : scored_) ++last_calls[call.last_rank];
  for (const auto& [rank, calls] : last_calls) {
    if (calls <= score.last_calls) continue;
    score.last_rank = rank;
    score.last_calls = calls;
  }
  std::vector<int64_t> late;
  for (const Call& call : scored_) {
    if (call.last_rank == score.last_rank) late.push_back(call.last_ns - call.before_last_ns);
  }
  const auto middle = late.begin() + static_cast<std::ptrdiff_t>(late.size() / 2);
  std::nth_element(late.begin(), middle, late.end());
  score.late_ns = *middle;
  const auto [first, newest] =
      std::minmax_element(scored_.begin(), scored_.end(),
                          [](const Call& a, const Call& b) { return a.position < b.position; });
  const auto calls = static_cast<int64_t>(newest->position - first->position);
  score.interval_ns = (newest->last_ns - first->last_ns) / std::max<int64_t>(calls, 1);
  return score;
}

}  // namespace rollcall
