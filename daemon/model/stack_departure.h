// SPDX-License-Identifier: Apache-2.0
// How a culprit departs from the ranks that wait, by the stacks of both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace rollcall {

struct StackDeparture {
  enum class Kind : uint8_t {
    kUnknown,
    kSkipped,   // it went past the call that the others wait in
    kExtra,     // it makes a call that the others do not make
    kLeftLoop,  // it has left the loop that the others are in
    kStays,     // the others have left the loop that it is in
    kBusy,      // it has not reached the others' call yet
  };
  Kind kind = Kind::kUnknown;
  size_t culprit = 0;  // whose stack this is: index into the verdict's culprits
  // The innermost function of the program that both are in, and where each stands in it.
  std::string function, file;
  int32_t culprit_line = 0, waiter_line = 0;  // 0 if unknown
  int32_t loop_first = 0, loop_last = 0;      // kLeftLoop, kStays: the loop; 0 if unknown
  // Begins a block that one side is in and the other is not: an if, an except. kLeftLoop: it may
  // have ended a pass of that loop before the call. 0 if unknown.
  int32_t condition_line = 0;
  // kSkipped, kExtra: the sides are in two branches of the if or match of this line; 0 if they are
  // not.
  int32_t decides_at = 0;
  // kSkipped: of the loop that both are in, a line that may end a pass before the others' call.
  int32_t skips_at = 0;
  // Of the loop that both are in, the source lets no pass go without the waiting rank's line.
  bool in_each_pass = false;
  // Both are in one pass of a loop in that function, as far as lines show it.
  bool shares_loop = false;
  // kSkipped: it is in the branch of `condition_line`, which leaves the pass or the function before
  // the others' line.
  bool leaves_branch = false;
  // kSkipped: the culprit is in a loop of a function that the waiting rank is not in, and has
  // called it from a line before the others' or, `in_own_loop`, from the same one.
  bool in_loop_below = false, in_own_loop = false;
  // kExtra: a line at which the others may have returned from a function that the culprit is in
  // (`returns_from`), before its call; 0 if there is none.
  int32_t returns_at = 0;
  std::string returns_from;
  // kExtra: it is back in a pass of that loop, and has made the calls before the others' line
  // twice.
  bool is_again = false;
};

}  // namespace rollcall
