// SPDX-License-Identifier: Apache-2.0
// When the samples of a process are due, so that a look ends in time on a busy host, too: there the
// samples take long, and come closer together. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace rollcall {

struct SamplePlan {
  int64_t apart_ns = 0;  // from the first to the last sample
  int64_t until_ns = 0;  // the last one must be there
  int64_t steps = 1;     // samples after the first one
};

// When the `step`th sample after the first one is due; it may be late already. `first_ns`: when the
// first one was taken. `rest_ns`: how long this sample may take, with those that come after it in
// its round. nullopt: leave it out, because the last one would come too late.
inline std::optional<int64_t> SampleDueNs(const SamplePlan& plan, int64_t first_ns, int64_t step,
                                          int64_t rest_ns, int64_t now_ns) {
  const int64_t needs_ns = rest_ns * 3 / 2;
  const int64_t last_ns = std::min(first_ns + plan.apart_ns, plan.until_ns - needs_ns);
  const int64_t due_ns = first_ns + std::max<int64_t>(last_ns - first_ns, 0) * step / plan.steps;
  if (step < plan.steps && std::max(now_ns, due_ns) + needs_ns > last_ns) return std::nullopt;
  return due_ns;
}

}  // namespace rollcall
