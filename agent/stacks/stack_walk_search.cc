// SPDX-License-Identifier: Apache-2.0
// The steps of a walk that search the stack for the caller.
#include <algorithm>
#include <optional>
#include <vector>

#include "agent/stacks/stack_walk.h"
#include "agent/stacks/word.h"

namespace rollcall {
namespace {

constexpr size_t kTrialFrames = 512;
// A trial of so many frames counts even if it does not reach the outermost frame.
constexpr size_t kEnoughFrames = 4;
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
  if (is_trial_ || !trials_.MaySearch(bytes) || !context_.budget->Spend(bytes / kWordBytes)) {
    return false;
  }
  std::vector<KnownFunction> ways = {KnownFunction::kKeepsFramePointer, KnownFunction::kNothing};
  if (has_rules) {
    function.start = FunctionStart();
    if (function.start == 0) return false;
    ways = {KnownFunction::kRules};
  }
  std::optional<CallerTrial> best;
  for (const CallerCandidate& candidate : FindCallers(function, bytes, &source_)) {
    if (candidate.rank < least || !trials_.MayTry()) break;
    for (const KnownFunction known : ways) {
      const std::optional<CallerTrial> trial = Try(candidate, known);
      if (!trial.has_value() || (best.has_value() && !IsBetter(*trial, *best))) continue;
      best = trial;
      if (best->is_certain()) return StepFromCandidate(candidate, known);
    }
  }
  // Without budget the trials end early: they show nothing about the stack.
  if (context_.budget->is_spent() || !best.has_value()) return false;
  if (!trials_.MayGuess(*best, stack_.frames.size())) return false;
  return StepFromCandidate(best->candidate, best->known);
}

// Walks on from the candidate, on a copy of this walk that does not search. nullopt if no stack
// begins like that.
std::optional<CallerTrial> StackWalk::Try(const CallerCandidate& candidate, KnownFunction known) {
  StackWalk walk(context_, thread_);
  const UnwoundFrame& frame = stack_.frames.back();
  walk.is_trial_ = true;
  walk.stack_.frames.push_back(frame);
  walk.source_.registers.SetFrame(frame.address, frame.stack_pointer, FramePointer());
  if (!walk.Start() || !walk.StepFromCandidate(candidate, known)) return std::nullopt;
  while (walk.AddFrame() && walk.stack_.frames.size() < kTrialFrames) {
    if (!walk.Step()) break;
  }
  const CallerTrial trial = {candidate, known, walk.stack_.note.empty(), walk.contradictions_};
  if (trial.reaches_the_end) return trial;
  const UnwindSource::Lacks& lacked = walk.lacked_;
  const bool goes_on = lacked.frame_pointer || lacked.stack || lacked.unwind_information ||
                       walk.stack_.frames.size() >= kEnoughFrames;
  if (!goes_on || (known == KnownFunction::kRules && !trial.is_confirmed())) return std::nullopt;
  return trial;
}

// Steps from the last frame to the candidate. With rules, the frame pointer that the candidate
// implies must lead the rules to the candidate.
bool StackWalk::StepFromCandidate(const CallerCandidate& candidate, KnownFunction known) {
  const UnwoundFrame& frame = stack_.frames.back();
  if (known != KnownFunction::kRules) {
    std::optional<uint64_t> fp = candidate.frame_pointer;
    if (!fp.has_value() && known == KnownFunction::kKeepsFramePointer) fp = FramePointer();
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
