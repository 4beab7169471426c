// SPDX-License-Identifier: Apache-2.0
// Unwinds a copied stack to return addresses, with libunwind's remote interface.
//
// Reads the RawSample and the mapped ELF files, never the process, which may have run on or ended.
// Memory is the copy of the stack first, then the files (text, unwind tables). If the unwind
// information does not lead to the caller, the unwinder follows the frame pointer or searches the
// stack, and the note names the guesses. Wrong or hostile input gives short stacks with a note,
// never a failure, and takes a bounded time. Not thread-safe.
#pragma once

#include <cstddef>
#include <memory>

#include "agent/processes/stack_sample.h"
#include "agent/stacks/unwound_stack.h"
#include "agent/symbols/debug_frames.h"
#include "agent/symbols/module_files.h"

namespace rollcall {

class UnwindBudget;

// Unwinds the threads of one sample.
class StackUnwinder {
 public:
  // Both must outlive this object.
  StackUnwinder(const RawSample& sample, SampleModules* modules);
  ~StackUnwinder();
  StackUnwinder(const StackUnwinder&) = delete;
  StackUnwinder& operator=(const StackUnwinder&) = delete;

  UnwoundStack Unwind(const RawThread& thread, size_t max_frames);

 private:
  SampleModules* modules_;
  DebugFrames debug_frames_;
  void* address_space_;  // libunwind's, whose headers stay out of here
  std::unique_ptr<UnwindBudget> budget_;
};

}  // namespace rollcall
