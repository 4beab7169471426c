// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/stack_comparison.h"

#include <algorithm>
#include <cstddef>

namespace rollcall {
namespace {

using Kind = StackDeparture::Kind;
using Habit = CulpritsCall::Habit;
using Frames = std::vector<ProgramFrame>;

bool IsSameFunction(const ProgramFrame& a, const ProgramFrame& b) {
  return a.function == b.function && a.file == b.file;
}

bool IsLoop(const CodeBlock& block) { return block.kind == CodeBlock::Kind::kLoop; }

bool Contains(const CodeBlock& block, int32_t line) {
  return block.first <= line && line <= block.last;
}

// The index of the innermost function that both are in by the same calls, or -1.
int FindMeeting(const Frames& a, const Frames& b) {
  int met = -1;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (!IsSameFunction(a[i], b[i])) break;
    met = static_cast<int>(i);
    if (a[i].line != b[i].line) break;
  }
  return met;
}

// The outermost loop around the one line that is not around the other, or nullptr.
const CodeBlock* FindLoopOfOne(const ProgramFrame& one, int32_t other_line) {
  for (const CodeBlock& block : one.blocks) {
    if (IsLoop(block) && !Contains(block, other_line)) return &block;
  }
  return nullptr;
}

bool ShareALoop(const ProgramFrame& one, int32_t other_line) {
  return std::any_of(one.blocks.begin(), one.blocks.end(), [&](const CodeBlock& block) {
    return IsLoop(block) && Contains(block, other_line);
  });
}

// The innermost condition or handler around the one line that is not around the other, or nullptr.
const CodeBlock* FindBranchOfOne(const ProgramFrame& one, int32_t other_line) {
  for (auto block = one.blocks.rbegin(); block != one.blocks.rend(); ++block) {
    if (!IsLoop(*block) && !Contains(*block, other_line)) return &*block;
  }
  return nullptr;
}

// The line that begins it, or 0.
int32_t FindConditionOfOne(const ProgramFrame& one, int32_t other_line) {
  const CodeBlock* branch = FindBranchOfOne(one, other_line);
  return branch == nullptr ? 0 : branch->first;
}

// The innermost if or match of which the two sides are in different branches, or 0.
int32_t FindDecision(const ProgramFrame& one, const ProgramFrame& other) {
  for (auto block = one.blocks.rbegin(); block != one.blocks.rend(); ++block) {
    if (block->decides_at == 0) continue;
    const bool is_other_branch =
        std::any_of(other.blocks.begin(), other.blocks.end(), [&](const CodeBlock& branch) {
          return branch.decides_at == block->decides_at && branch.first != block->first &&
                 !Contains(*block, other.line) && !Contains(branch, one.line);
        });
    if (is_other_branch) return block->decides_at;
  }
  return 0;
}

// The two frames of the function in which the sides part, and what lies below them.
class Parting {
 public:
  Parting(const Frames& culprit, const Frames& waiter, size_t at, const CulpritsCall& call)
      : culprits_(culprit),
        waiters_(waiter),
        at_(at),
        c_(culprit[at]),
        w_(waiter[at]),
        call_(call),
        has_source_(c_.has_source && w_.has_source),
        shares_loop_(ShareALoop(w_, c_.line)),
        own_condition_(FindConditionOfOne(c_, w_.line)),
        others_condition_(FindConditionOfOne(w_, c_.line)) {}

  StackDeparture Judge() const {
    StackDeparture found;
    found.function = c_.function;
    found.file = c_.file;
    found.culprit_line = c_.line;
    found.waiter_line = w_.line;
    found.shares_loop = shares_loop_;
    found.kind = c_.line == w_.line ? BelowOneLine() : BetweenLines(&found);
    if (found.kind == Kind::kExtra) {
      found.condition_line = own_condition_;
      found.decides_at = FindDecision(c_, w_);
      if (const ProgramFrame* below = FindReturnBelow()) {
        found.returns_at = below->returns_at;
        found.returns_from = below->function;
      }
    }
    if (found.kind == Kind::kSkipped) {
      found.decides_at = FindDecision(c_, w_);
      found.leaves_branch = LeavesInItsBranch();
      found.condition_line = found.leaves_branch ? own_condition_ : others_condition_;
      found.skips_at = FindEndOfPass();
      found.in_each_pass = ComesByInEachPass();
      found.in_loop_below = !is_later() && IsInOwnLoop();
      found.in_own_loop = c_.line == w_.line && found.in_loop_below;
    }
    return found;
  }

 private:
  // The same line called other functions of the program.
  Kind BelowOneLine() const {
    const bool culprit_is_deeper = at_ + 1 < culprits_.size();
    if (!culprit_is_deeper && at_ + 1 == waiters_.size()) return Kind::kUnknown;
    if (!call_.is_in_call) return culprit_is_deeper ? Kind::kBusy : Kind::kUnknown;
    if (is_usual()) return Kind::kSkipped;
    return call_.habit == Habit::kNew && culprit_is_deeper ? Kind::kExtra : Kind::kUnknown;
  }

  Kind BetweenLines(StackDeparture* found) const {
    if (!has_source_) return ByLinesAlone();
    if (RepeatsInOwnLoop() || CannotHaveSkipped()) return Kind::kExtra;
    if (const CodeBlock* loop = FindLoopOfOne(w_, c_.line)) {
      return OutsideTheirLoop(*loop, found);
    }
    if (const CodeBlock* loop = FindLoopOfOne(c_, w_.line)) return InOwnLoop(*loop, found);
    if (IsStillInALoopBelow()) return Kind::kStays;
    const CodeBlock* below = is_later() ? FindLoopBelow() : nullptr;
    if (below != nullptr) {
      const Kind kind = OutsideTheirLoop(*below, found);
      found->loop_first = found->loop_last = found->condition_line = 0;  // of another function
      return kind;
    }
    return call_.is_in_call ? InACall() : DoingSomethingElse();
  }

  // A loop in a function that the others are in and the culprit is not.
  const CodeBlock* FindLoopBelow() const {
    for (size_t i = at_ + 1; i < waiters_.size(); ++i) {
      const CodeBlock* loop = FindLoopOfOne(waiters_[i], 0);
      if (loop != nullptr) return loop;
    }
    return nullptr;
  }

  // Nothing is known of loops.
  Kind ByLinesAlone() const {
    if (!call_.is_in_call) return is_later() ? Kind::kUnknown : Kind::kBusy;
    if (is_usual()) return Kind::kSkipped;
    return call_.habit == Habit::kNew && !is_later() ? Kind::kExtra : Kind::kUnknown;
  }

  // Inside a larger loop, the others' loop may be a part of a step, or an epoch. Only a call that
  // belongs to each step shows that it is a part of one.
  Kind OutsideTheirLoop(const CodeBlock& loop, StackDeparture* found) const {
    if (!call_.is_in_call) return shares_loop_ || !is_later() ? Kind::kBusy : Left(loop, found);
    if (shares_loop_ && is_usual()) return Kind::kSkipped;
    if (shares_loop_ && own_condition_ != 0) return Kind::kExtra;
    if (shares_loop_ && call_.habit == Habit::kNew && FindReturnBelow() != nullptr) {
      return Kind::kExtra;
    }
    if (is_later()) return Left(loop, found);
    if (IsAtHead()) return Kind::kSkipped;
    return shares_loop_ && call_.habit == Habit::kUnknown ? Kind::kUnknown : Kind::kExtra;
  }

  Kind InOwnLoop(const CodeBlock& loop, StackDeparture* found) const {
    if (w_.line < loop.first) {
      if (call_.is_in_call) return shares_loop_ && !is_usual() ? Kind::kExtra : Kind::kSkipped;
      return shares_loop_ ? Kind::kBusy : Kind::kSkipped;
    }
    if (call_.is_in_call && call_.habit == Habit::kNew && own_condition_ != 0) return Kind::kExtra;
    if (!call_.is_in_call && shares_loop_) return Kind::kBusy;
    if (shares_loop_ && is_usual()) return Kind::kSkipped;
    found->loop_first = loop.first;
    found->loop_last = loop.last;
    return Kind::kStays;
  }

  Kind Left(const CodeBlock& loop, StackDeparture* found) const {
    found->loop_first = loop.first;
    found->loop_last = loop.last;
    found->condition_line = FindSkippedPass(loop);
    return Kind::kLeftLoop;
  }

  // A rank behind a loop that nothing ends early has had fewer passes, or went through some of them
  // without the call. The line that lets a pass go without it, or 0.
  int32_t FindSkippedPass(const CodeBlock& loop) const {
    if (loop.ends_at != 0) return 0;
    if (loop.skips_at != 0) return loop.skips_at;
    for (const CodeBlock& block : w_.blocks) {
      const bool is_inside = block.first > loop.first && block.last <= loop.last;
      const bool decides = block.kind == CodeBlock::Kind::kCondition && !block.is_periodic;
      if (is_inside && decides) return block.first;
    }
    return 0;
  }

  // Both are in the same loops, and the culprit waits in another call than the others.
  Kind InACall() const {
    if (is_usual() || (LeavesInItsBranch() && call_.habit != Habit::kNew)) return Kind::kSkipped;
    if (HasBranchOfItsOwn() || call_.habit == Habit::kAlike) return Kind::kExtra;
    if (IsAtHead()) return Kind::kSkipped;
    if (others_condition_ != 0) return Kind::kSkipped;
    if (shares_loop_) return call_.habit == Habit::kNew ? Kind::kExtra : Kind::kUnknown;
    return is_later() ? Kind::kSkipped : Kind::kExtra;
  }

  // In one loop, the culprit may be in the pass before that of the others.
  Kind DoingSomethingElse() const {
    return is_later() && !shares_loop_ ? Kind::kSkipped : Kind::kBusy;
  }

  // In a loop of a function that the others are not in, it makes a further pass.
  bool RepeatsInOwnLoop() const {
    return call_.is_in_call && call_.repeats && shares_loop_ && IsInOwnLoop();
  }

  // Nothing takes it back to its line, so it makes the calls of a loop that the others have left.
  bool IsStillInALoopBelow() const {
    return call_.is_in_call && !is_later() && !shares_loop_ && is_usual() && IsInOwnLoop();
  }

  // The outermost function below, which the others are not in, that may return before the
  // culprit's line; nullptr if there is none.
  const ProgramFrame* FindReturnBelow() const {
    const auto at =
        std::find_if(culprits_.begin() + static_cast<std::ptrdiff_t>(at_) + 1, culprits_.end(),
                     [](const ProgramFrame& frame) { return frame.returns_at != 0; });
    return at == culprits_.end() ? nullptr : &*at;
  }

  // In a function that the others are not in.
  bool IsInOwnLoop() const {
    return std::any_of(
        culprits_.begin() + static_cast<std::ptrdiff_t>(at_) + 1, culprits_.end(),
        [](const ProgramFrame& frame) { return FindLoopOfOne(frame, 0) != nullptr; });
  }

  // Each pass of the loop that both are in makes the others' call. The culprit is in another one of
  // that loop, so it made one more before.
  bool CannotHaveSkipped() const {
    return call_.is_in_call && call_.others_call_directly && is_usual() && ComesByInEachPass();
  }

  // The source of the loop that both are in lets no pass go without the others' line.
  bool ComesByInEachPass() const {
    if (!shares_loop_ || at_ + 1 != waiters_.size() || w_.blocks.empty()) return false;
    const CodeBlock& innermost = w_.blocks.back();
    return IsLoop(innermost) && Contains(innermost, c_.line) && c_.line != innermost.first &&
           w_.line != innermost.first && innermost.skips_at == 0 && innermost.ends_at == 0;
  }

  // A line that may end a pass of the innermost loop before the others' call, or 0.
  int32_t FindEndOfPass() const {
    const auto loop = std::find_if(w_.blocks.rbegin(), w_.blocks.rend(), IsLoop);
    if (loop == w_.blocks.rend() || !Contains(*loop, c_.line)) return 0;
    return loop->skips_at < w_.line ? loop->skips_at : 0;
  }

  bool is_later() const { return c_.line > w_.line; }
  // A forward pass in a branch of its own makes the calls of any forward pass.
  bool is_usual() const {
    return call_.habit == Habit::kUsual ||
           (call_.habit == Habit::kAlike && !HasBranchOfItsOwn() && !HasConditionBelow());
  }

  // All ranks come by a periodic one. What a library does there may be work of one rank.
  bool HasBranchOfItsOwn() const {
    return std::any_of(c_.blocks.begin(), c_.blocks.end(), [&](const CodeBlock& block) {
      const bool is_of_all = block.is_periodic && call_.is_direct;
      return !IsLoop(block) && !Contains(block, w_.line) && !is_of_all;
    });
  }

  // Whether a condition stands in a function that the culprit has called from there and the others
  // have not.
  bool HasConditionBelow() const {
    for (size_t i = at_ + 1; i < culprits_.size(); ++i) {
      if (FindConditionOfOne(culprits_[i], 0) != 0) return true;
    }
    return false;
  }

  // The branch that it is in leaves the pass or the function before the others' line.
  bool LeavesInItsBranch() const {
    const CodeBlock* branch = FindBranchOfOne(c_, w_.line);
    return branch != nullptr && branch->ends_at != 0 && branch->last < w_.line;
  }

  // At the head of the loop that both are in, each rank comes by once a pass.
  bool IsAtHead() const {
    return std::any_of(w_.blocks.begin(), w_.blocks.end(), [&](const CodeBlock& block) {
      return IsLoop(block) && block.first == c_.line;
    });
  }

  const Frames& culprits_;
  const Frames& waiters_;
  const size_t at_;
  const ProgramFrame& c_;
  const ProgramFrame& w_;
  const CulpritsCall& call_;
  const bool has_source_, shares_loop_;
  const int32_t own_condition_, others_condition_;
};

}  // namespace

StackDeparture CompareStacks(const Frames& culprit, const Frames& waiter,
                             const CulpritsCall& call) {
  const int at = FindMeeting(culprit, waiter);
  if (at < 0) return StackDeparture();
  return Parting(culprit, waiter, static_cast<size_t>(at), call).Judge();
}

}  // namespace rollcall
