// SPDX-License-Identifier: Apache-2.0
// The stacks of a process: takes a sample, lets the process run on, unwinds, and names the frames.
// The entry point for the rest of the agent.
//
//   StackReader reader;                       // keeps files and names between processes
//   PtraceStackTaker taker;
//   const ProcessStack stack = reader.TakeAndUnwind(&taker, pid, TakeLimits());
//
// Never fails as a whole: ProcessStack::error and ThreadStack::note report what is missing and why.
// Not thread-safe: one StackReader belongs to one thread, which must be a spare one
// (stack_taker.h).
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "agent/processes/stack_sample.h"
#include "agent/stacks/stack_taker.h"
#include "agent/symbols/module_files.h"
#include "agent/symbols/symbolizer.h"

namespace rollcall {

class StackReader {
 public:
  explicit StackReader(std::string proc_root = "/proc")
      : proc_root_(std::move(proc_root)), files_(proc_root_) {}

  ProcessStack TakeAndUnwind(StackTaker* taker, pid_t pid, const TakeLimits& limits);

  // See ModuleFiles::LeaveOut().
  void LeaveOut(std::vector<uint64_t> devices, std::vector<FileId> files) {
    files_.LeaveOut(std::move(devices), std::move(files));
  }
  // Opens no file of the job at all from now on: stacks have addresses in modules, no names, and
  // Python frames.
  void LeaveOutAll() { has_files_ = false; }

  // Unwinds a sample. The process may have ended.
  ProcessStack Unwind(const RawSample& sample, const TakeLimits& limits);

 private:
  std::string proc_root_;
  ModuleFiles files_;
  bool has_files_ = true;
  Symbolizer symbolizer_;
};

// "process 4121, rank 3, 12 threads, taken by ptrace", then each thread, then what is missing and
// why. `rank`: below 0 if there is none.
std::string FormatProcessStack(const ProcessStack& stack, int rank = -1);

// "#3  0x7f01  train()  at train.cc:41  (libtrain.so+0x1234)", a line per frame, as in gdb.
std::string FormatThreadStack(const ThreadStack& thread);

}  // namespace rollcall
