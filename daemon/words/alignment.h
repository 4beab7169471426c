// SPDX-License-Identifier: Apache-2.0
// Aligns two histories of calls: finds extra, skipped, swapped and replaced calls.
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
  std::vector<AlignedCall> lines;  // begin two calls before the first difference
  uint64_t length = 0;             // number of extra or skipped calls
};

// `others` and `culprits` begin at the same position and agree before it. Compares a
// bounded number of calls. The shorter history has not ended, it is only behind: later calls of the
// longer one are not a difference.
Alignment Align(const std::vector<HistoryCall>& others, const std::vector<HistoryCall>& culprits);

// True if the calls are equal in everything on which ranks must agree.
bool SameCall(const CallArgs& a, const CallArgs& b);

}  // namespace rollcall
