// SPDX-License-Identifier: Apache-2.0
// Whether `rollcall run` prints the verdict again below what the launcher prints when its ranks
// end. Pure.
#pragma once

#include <cstdint>

#include "base/durations.h"

namespace rollcall {

struct EndOfJob {
  bool is_aborted = false;           // by --on-hang=abort
  bool has_failed = false;           // by itself
  bool is_ended_while_hung = false;  // a person or a scheduler ended it, for example by Ctrl-C
  int64_t since_verdict_ns = 0;      // from the printing of the verdict to the end of the job
};

// A verdict that is less than a second old is still on the screen.
inline constexpr int64_t kRepeatAfterNs = kSecond;

inline bool RepeatsVerdict(const EndOfJob& end) {
  const bool has_ended_badly = end.is_aborted || end.has_failed || end.is_ended_while_hung;
  return has_ended_badly && end.since_verdict_ns >= kRepeatAfterNs;
}

}  // namespace rollcall
