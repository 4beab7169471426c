// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/step_departure.h"

#include <algorithm>
#include <cstddef>

namespace rollcall {
namespace {

// The least number of calls between the expected call, at the begin of the step, and an equal one
// of the odd call; ahead or behind in a circle. The step's length: there is none.
size_t Distance(const std::vector<CallToken>& step, CallToken odd, bool ahead) {
  for (size_t distance = 1; distance < step.size(); ++distance) {
    if (step[ahead ? distance : step.size() - distance] == odd) return distance;
  }
  return step.size();
}

bool Has(const std::vector<CallToken>& step, CallToken call) {
  return std::find(step.begin(), step.end(), call) != step.end();
}

// `step`: from the call on that the habit expects.
DivergenceKind Compare(const std::vector<CallToken>& step, CallToken odd, CallToken others,
                       bool is_earlier) {
  const CallToken expected = step.front();
  if (odd == expected) {
    return Has(step, others) ? DivergenceKind::kReplaced : DivergenceKind::kSkipped;
  }
  if (others != expected) return DivergenceKind::kReplaced;
  const size_t behind = Distance(step, odd, false);
  if (behind == step.size()) return DivergenceKind::kReplaced;
  const size_t ahead = is_earlier ? step.size() - behind : Distance(step, odd, true);
  if (ahead == behind) return DivergenceKind::kReplaced;
  return ahead < behind ? DivergenceKind::kSkipped : DivergenceKind::kExtra;
}

}  // namespace

StepDeparture DepartFromStep(const std::vector<CallToken>& calls, CallToken others,
                             bool is_earlier) {
  if (calls.size() < 2) return {};
  const size_t period = GuessHabit(calls, calls.size() - 1).period;
  if (period == 0) return {};
  const auto end = calls.end() - 1;
  const std::vector<CallToken> step(end - static_cast<std::ptrdiff_t>(period), end);
  return {Compare(step, calls.back(), others, is_earlier), Has(step, calls.back())};
}

}  // namespace rollcall
