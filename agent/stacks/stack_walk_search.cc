// SPDX-License-Identifier: Apache-2.0
// The steps of a walk that search the stack for the caller.
#include <algorithm>
#include <optional>
#include <tuple>
#include <vector>

#include "agent/stacks/stack_walk.h"
#include "agent/stacks/word.h"

namespace rollcall {
namespace {

constexpr size_t kTrialFrames = 512;
// A trial of so many frames counts even if it does not reach the outermost frame.
constexpr size_t kEnoughFrames = 4;
// A hostile stack could ask for a search at every frame. These limits are for all searches of a
// thread.
constexpr uint64_t kMostSearchedBytes = 1 << 20;
constexpr int kMostTrials = 128;
// Below the frame pointer, where the frame of hand-written code would be.
constexpr uint64_t kSearchedBelow = 128 << 10;

}  // namespace

SearchedFunction StackWalk::LastFunction() const {
  const UnwoundFrame& frame = stack_.frames.back();
  return {frame.address, 0, frame.stack_pointer};
}

// Follows the frame pointer, except where it is still the caller's: hand-written code may set up no
// frame pointer. The search then finds a call to this code below the place of the frame pointer.
bool StackWalk::StepByFramePointerOrCode() {
  const uint64_t sp = Register(UNW_REG_SP);
  const uint64_t slot = FramePointer().value_or(0) + kWordBytes;
  if (slot <= sp) return false;
  const auto by_frame = RankSlot(LastFunction(), slot, &source_);
  const bool confirmed = by_frame.has_value() && by_frame->rank >= CallerRank::kFitsFrame;
  if (confirmed && StepByFramePointer()) return true;
  const uint64_t below = std::min(slot - sp, kSearchedBelow);
  return StepBySearch(below, CallerRank::kCallsIt, false) || StepByFramePointer();
}

// Searches at most `bytes` of the stack for the caller of the last frame. `has_rules`: libunwind
// knows the rules of the frame and lacks the frame pointer.
bool StackWalk::StepBySearch(uint64_t bytes, CallerRank least, bool has_rules) {
  SearchedFunction function = LastFunction();
  bytes = std::min(bytes, source_.StackBytesAbove(function.stack_pointer));
  searched_bytes_ += bytes;
  if (is_trial_ || searched_bytes_ > kMostSearchedBytes ||
      !context_.budget->Spend(bytes / kWordBytes)) {
    return false;
  }
  std::vector<Known> ways = {Known::kKeepsFramePointer, Known::kNothing};
  if (has_rules) {
    function.start = FunctionStart();
    if (function.start == 0) return false;
    ways = {Known::kRules};
  }
  std::optional<Trial> best;
  for (const CallerCandidate& candidate : FindCallers(function, bytes, &source_)) {
    if (candidate.rank < least || ++trials_ > kMostTrials) break;
    for (const Known known : ways) {
      const std::optional<Trial> trial = Try(candidate, known);
      if (!trial.has_value() || (best.has_value() && !IsBetter(*trial, *best))) continue;
      best = trial;
      if (best->is_certain()) return StepFromCandidate(candidate, known);
    }
  }
  // Without budget the trials end early: they show nothing about the stack.
  if (context_.budget->is_spent() || !best.has_value() || !MayGuess(*best)) return false;
  guessed_caller_ = true;
  return StepFromCandidate(best->candidate, best->known);
}

// Whether to follow a candidate of which only its place is known. Two such guesses in a row would
// lead into the old frames behind the end of a stack.
bool StackWalk::MayGuess(const Trial& trial) {
  if (trial.reaches_the_end || trial.is_confirmed()) return true;
  const int frames = static_cast<int>(stack_.frames.size());
  if (last_guess_ == frames - 1) return false;
  last_guess_ = frames;
  return true;
}

// Every trial passes through the same outer frames, so a function there that another one jumped to
// contradicts them all. An old frame contradicts its own trial only.
bool StackWalk::IsBetter(const Trial& a, const Trial& b) {
  const auto merits = [](const Trial& trial) {
    return std::make_tuple(trial.candidate.rank >= CallerRank::kCallsIt, trial.reaches_the_end,
                           trial.is_confirmed(), -trial.contradictions);
  };
  if (merits(a) != merits(b)) return merits(a) > merits(b);
  if (a.is_confirmed() && a.candidate.rank != b.candidate.rank) {
    return a.candidate.rank > b.candidate.rank;
  }
  return a.candidate.slot < b.candidate.slot;
}

// Walks on from the candidate, on a copy of this walk that does not search. nullopt if no stack
// begins like that.
std::optional<StackWalk::Trial> StackWalk::Try(const CallerCandidate& candidate, Known known) {
  StackWalk walk(context_, thread_);
  const UnwoundFrame& frame = stack_.frames.back();
  walk.is_trial_ = true;
  walk.stack_.frames.push_back(frame);
  walk.source_.registers.SetFrame(frame.address, frame.stack_pointer, FramePointer());
  if (!walk.Start() || !walk.StepFromCandidate(candidate, known)) return std::nullopt;
  while (walk.AddFrame() && walk.stack_.frames.size() < kTrialFrames) {
    if (!walk.Step()) break;
  }
  const Trial trial = {candidate, known, walk.stack_.note.empty(), walk.contradictions_};
  if (trial.reaches_the_end) return trial;
  const UnwindSource::Lacks& lacked = walk.lacked_;
  const bool goes_on = lacked.frame_pointer || lacked.stack || lacked.unwind_information ||
                       walk.stack_.frames.size() >= kEnoughFrames;
  if (!goes_on || (known == Known::kRules && !trial.is_confirmed())) return std::nullopt;
  return trial;
}

// Steps from the last frame to the candidate. With rules, the frame pointer that the candidate
// implies must lead the rules to the candidate.
bool StackWalk::StepFromCandidate(const CallerCandidate& candidate, Known known) {
  const UnwoundFrame& frame = stack_.frames.back();
  if (known != Known::kRules) {
    std::optional<uint64_t> fp = candidate.frame_pointer;
    if (!fp.has_value() && known == Known::kKeepsFramePointer) fp = FramePointer();
    return StartAtCaller(candidate.return_address, candidate.slot + kWordBytes, fp);
  }
  at_call_ = frame.is_return_address;
  source_.registers.SetFrame(frame.address - (at_call_ ? 1 : 0), frame.stack_pointer,
                             candidate.slot - kWordBytes);
  if (!Start() || unw_step(&cursor_) <= 0) return false;
  at_call_ = false;
  return Register(UNW_REG_IP) == candidate.return_address && Register(UNW_REG_SP) > candidate.slot;
}

}  // namespace rollcall
