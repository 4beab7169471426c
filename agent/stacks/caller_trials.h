// SPDX-License-Identifier: Apache-2.0
// Which of several walks from candidates for a caller to believe, and how much a thread's walk may
// search for them. Pure.
#pragma once

#include <cstddef>
#include <cstdint>

#include "agent/stacks/caller_search.h"

namespace rollcall {

// How much is known about the function of the last frame when the search looks for its caller.
enum class KnownFunction {
  kRules,              // its unwind rules, which need the frame pointer
  kKeepsFramePointer,  // nothing; assume that it left the frame pointer as it was
  kNothing,            // nothing; assume that the frame pointer is lost
};

// A walk from a candidate.
struct CallerTrial {
  CallerCandidate candidate;
  KnownFunction known;
  bool reaches_the_end;  // of the stack
  int contradictions;    // frames whose call leads to another function than the one it called

  bool is_confirmed() const { return candidate.rank >= CallerRank::kFitsFrame; }
  bool is_certain() const { return reaches_the_end && is_confirmed() && contradictions == 0; }
};

// Returns true if `a` is the better guess.
bool IsBetter(const CallerTrial& a, const CallerTrial& b);

// The searches of one thread. A hostile stack could ask for one at every frame, so all of them
// share limits.
class CallerTrials {
 public:
  // Notes a search of so many bytes. False if the searches read too much.
  bool MaySearch(uint64_t bytes);
  // Notes a trial. False if there were too many.
  bool MayTry();
  // Whether to follow the best trial of a search, from a stack of so many frames. Notes that the
  // walk does.
  bool MayGuess(const CallerTrial& trial, size_t frames);

  bool has_guessed() const { return has_guessed_; }

 private:
  uint64_t searched_bytes_ = 0;
  int trials_ = 0;
  bool has_guessed_ = false;
  int last_guess_ = -1;  // number of frames at the last guess by place alone
};

}  // namespace rollcall
