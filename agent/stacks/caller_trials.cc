// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/caller_trials.h"

#include <tuple>

namespace rollcall {
namespace {

constexpr uint64_t kMostSearchedBytes = 1 << 20;
constexpr int kMostTrials = 128;

}  // namespace

// Every trial passes through the same outer frames, so a function there that another one jumped to
// contradicts them all. An old frame contradicts its own trial only.
bool IsBetter(const CallerTrial& a, const CallerTrial& b) {
  const auto merits = [](const CallerTrial& trial) {
    return std::make_tuple(trial.candidate.rank >= CallerRank::kCallsIt, trial.reaches_the_end,
                           trial.is_confirmed(), -trial.contradictions);
  };
  if (merits(a) != merits(b)) return merits(a) > merits(b);
  if (a.is_confirmed() && a.candidate.rank != b.candidate.rank) {
    return a.candidate.rank > b.candidate.rank;
  }
  return a.candidate.slot < b.candidate.slot;
}

bool CallerTrials::MaySearch(uint64_t bytes) {
  searched_bytes_ += bytes;
  return searched_bytes_ <= kMostSearchedBytes;
}

bool CallerTrials::MayTry() { return ++trials_ <= kMostTrials; }

// Two guesses in a row of which only the place is known would lead into the old frames behind the
// end of a stack.
bool CallerTrials::MayGuess(const CallerTrial& trial, size_t frames) {
  const bool by_place_alone = !trial.reaches_the_end && !trial.is_confirmed();
  const int now = static_cast<int>(frames);
  if (by_place_alone && last_guess_ == now - 1) return false;
  if (by_place_alone) last_guess_ = now;
  has_guessed_ = true;
  return true;
}

}  // namespace rollcall
