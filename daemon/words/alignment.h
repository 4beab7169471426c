// SPDX-License-Identifier: Apache-2.0
// Aligns two histories of calls: finds inserted, skipped, swapped and replaced calls.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/model/verdict.h"

namespace rollcall {

struct HistoryCall {
  uint64_t position = 0;
  CallArgs args;
};

struct Alignment {
  DivergenceKind kind = DivergenceKind::kNone;
  std::vector<AlignedCall> lines;  // from a little before the first difference on
  uint64_t length = 0;             // of the extra or skipped calls
};

// `others` and `culprits` begin at the same position, before which they agree,
// and the comparison has a bounded length. The last call of the shorter one is
// its newest one, so that later calls of the longer side are no difference.
Alignment Align(const std::vector<HistoryCall>& others, const std::vector<HistoryCall>& culprits);

// Is it the same call, as far as ranks must agree on it?
bool SameCall(const CallArgs& a, const CallArgs& b);

}  // namespace rollcall
