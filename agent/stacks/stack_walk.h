// SPDX-License-Identifier: Apache-2.0
// The walk over the frames of one thread. Only the files of the unwinder include this header,
// because it needs libunwind's headers.
//
// A step takes the first way that leads to a caller:
//   1. libunwind, by .eh_frame
//   2. elfutils, by .debug_frame, and by .eh_frame without a search table
//   3. the frame pointer, if a return address is where it points
//   4. a search of the stack for a return address, confirmed by code or by a walk from there
#pragma once

#include <libunwind.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "agent/stacks/caller_search.h"
#include "agent/stacks/caller_trials.h"
#include "agent/stacks/unwind_source.h"
#include "agent/stacks/unwound_stack.h"
#include "agent/symbols/debug_frames.h"

namespace rollcall {

// What the walks of one sample share.
struct WalkContext {
  unw_addr_space_t space;
  SampleModules* modules;
  DebugFrames* debug_frames;
  UnwindBudget* budget;
};

class StackWalk {
 public:
  // Both must outlive this object.
  StackWalk(const WalkContext& context, const RawThread& thread)
      : context_(context), thread_(thread), source_(thread, context.modules, context.budget) {}

  // Call it once.
  UnwoundStack Run(size_t max_frames);

 private:
  bool Start() { return unw_init_remote(&cursor_, context_.space, &source_) == 0; }
  bool StartAtCaller(uint64_t return_address, uint64_t sp, std::optional<uint64_t> fp);
  uint64_t Register(int number);
  std::optional<uint64_t> FramePointer();
  uint64_t InstructionAddress();
  uint64_t FunctionStart();
  bool AddFrame();
  void AddNote(const char* note);

  bool Step();
  bool StepOtherwise();
  bool StepFromNoCode();
  bool IsStartOfStack();
  bool StepFromStart();
  bool StepBySignalFrame();
  bool StepByDebugFrame();
  bool StepByFramePointer();
  std::string ReasonToStop(int error);

  // In stack_walk_search.cc.
  bool StepByFramePointerOrCode();
  bool StepBySearch(uint64_t bytes, CallerRank least, bool has_rules);
  bool StepFromCandidate(const CallerCandidate& candidate, KnownFunction known);
  std::optional<CallerTrial> Try(const CallerCandidate& candidate, KnownFunction known);
  SearchedFunction LastFunction() const;

  const WalkContext context_;
  const RawThread& thread_;
  UnwindSource source_;
  unw_cursor_t cursor_;
  UnwoundStack stack_;
  UnwindSource::Lacks lacked_;     // of the last step by libunwind
  bool in_signal_frame_ = false;   // the last frame is a signal trampoline
  bool interrupted_ = false;       // the last frame was interrupted, so it is not a call
  bool at_call_ = false;           // the cursor is at the call, one byte before the return address
  bool is_outermost_ = false;      // the last frame has no caller
  bool misleading_rules_ = false;  // the rules of the last frame lead to no code
  bool is_trial_ = false;          // a walk from a candidate of another walk
  int contradictions_ = 0;         // in a trial: frames whose call leads to another function
  bool followed_frame_pointer_ = false;
  CallerTrials trials_;
};

}  // namespace rollcall
