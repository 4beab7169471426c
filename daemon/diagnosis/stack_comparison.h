// SPDX-License-Identifier: Apache-2.0
// Compares the stacks of a culprit and of a rank that waits: walks both from the outside to the
// innermost function of the program that both are in, and compares the lines there.
//
// A loop makes "a later line" ambiguous: the culprit may be behind the others in the same pass, or
// ahead of them by one. Which of both it is, the culprit's own past decides: whether the call that
// it is in belongs to the step that it repeats. What stays uncertain is kUnknown. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/model/program_frame.h"
#include "daemon/model/stack_departure.h"

namespace rollcall {

// What the culprit does there, as its calls show it.
struct CulpritsCall {
  enum class Habit : uint8_t {
    kUnknown,
    kUsual,  // it belongs to the step that the culprit repeats, and comes from the same line
    kAlike,  // an equal call belongs to that step; from which line is not known
    kNew,    // it does not
  };
  Habit habit = Habit::kUnknown;
  // The culprit is inside a call that waits for other ranks. False if it does something else.
  bool is_in_call = false;
  // The call before it was an equal one, of the same line where that is known.
  bool repeats = false;
  // The program itself makes the call that the others wait in: no library decides whether to.
  bool others_call_directly = false;
  // And so it makes the culprit's call.
  bool is_direct = false;
};

StackDeparture CompareStacks(const std::vector<ProgramFrame>& culprit,
                             const std::vector<ProgramFrame>& waiter, const CulpritsCall& call);

}  // namespace rollcall
