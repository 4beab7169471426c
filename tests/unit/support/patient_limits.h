// SPDX-License-Identifier: Apache-2.0
// Limits of stacks without their times.
#pragma once

#include <cstdint>

#include "agent/stacks/stack_taker.h"

namespace rollcall {

// The usual ones, but the thread of a busy machine may take a minute to stop.
inline TakeLimits PatientLimits() {
  constexpr int64_t kMinute = 60'000'000'000;
  TakeLimits limits;
  limits.thread_timeout_ns = limits.total_timeout_ns = limits.most_timeout_ns = kMinute;
  return limits;
}

}  // namespace rollcall
