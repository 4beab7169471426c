// SPDX-License-Identifier: Apache-2.0
// What a rank usually does: learns the period of a sequence of calls, and finds the calls that
// depart from it.
//
// Training repeats a step. A habit is a period that the newest calls have kept for several steps in
// a row, so calls of the warm-up do not count. A step may itself repeat something: several
// micro-batches, or steps between two evaluations. The longer period counts where it explains
// more calls. Pure: sequences of numbers, no clock, no state of a job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace rollcall {

using CallToken = uint64_t;  // equal for equal calls

struct Habit {
  size_t period = 0;  // calls of one step; 0 if there is no habit
  size_t kept = 0;    // number of calls that repeat with this period, up to the judged one
  size_t steps() const { return period == 0 ? 0 : kept / period; }
};

enum class Conduct : uint8_t {
  kUnknown,  // too few calls, no habit, or a call that has followed the same calls before
  kKept,
  kBroken,  // a habit, and a call that has never followed the calls of a whole step
};

struct Judged {
  Conduct conduct = Conduct::kUnknown;
  Habit habit;
};

// Judges the call at this index by the calls before it. The habit expects
// `calls[at - habit.period]`.
Judged JudgeCall(const std::vector<CallToken>& calls, size_t at);

// The habit of the calls before `at`, where a guess is enough: three steps, however short.
Habit GuessHabit(const std::vector<CallToken>& calls, size_t at);

// Calls by which a rank is out of step with its habit.
struct Slip {
  enum class Kind : uint8_t {
    kUnknown,  // no habit, or the calls depart from it in another way
    kNone,     // the rank has kept its habit up to the newest call
    kSkipped,
    kExtra,
  };
  Kind kind = Kind::kUnknown;
  Habit habit;
  // kExtra: indices of the extra calls. kSkipped: indices of the skipped calls as the rank made
  // them one step earlier.
  std::vector<size_t> calls;
};

// Finds the first slip among the newest `horizon` calls that concerns a call for which `concerns`
// is true. After any other extra call the search goes on: an evaluation belongs to no step.
Slip FindSlip(const std::vector<CallToken>& calls, size_t horizon,
              const std::function<bool(size_t)>& concerns);

}  // namespace rollcall
