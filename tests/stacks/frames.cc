// SPDX-License-Identifier: Apache-2.0
// Prints the native frames of a process as addresses, for parity.py:
//
//   stack_frames PID
//   thread TID NAME
//   0x7f01 FUNCTION
//   note TEXT
//
// An inlined call has the address of its caller, so it is left out. The frames of Python's
// evaluator are printed, which Rollcall otherwise replaces by the functions of Python.
#include <cinttypes>
#include <cstdio>
#include <cstdlib>

#include "agent/stacks/ptrace_stack_taker.h"
#include "agent/stacks/stack_reader.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  rollcall::TakeLimits limits;
  limits.kept_frames = limits.max_frames;
  rollcall::PtraceStackTaker taker;
  rollcall::StackReader reader;
  rollcall::RawSample sample = taker.Take(std::atoi(argv[1]), limits);
  for (rollcall::RawThread& thread : sample.threads) thread.is_python = false;
  const rollcall::ProcessStack stack = reader.Unwind(sample, limits);
  for (const rollcall::ThreadStack& thread : stack.threads) {
    std::printf("thread %d %s\n", thread.tid, thread.name.c_str());
    for (const rollcall::Frame& frame : thread.frames) {
      if (frame.inlined) continue;
      std::printf("0x%" PRIx64 " %s\n", frame.address, frame.function.c_str());
    }
    if (!thread.note.empty()) std::printf("note %s\n", thread.note.c_str());
  }
  if (!stack.error.empty()) std::fprintf(stderr, "stack_frames: %s\n", stack.error.c_str());
  return stack.threads.empty() ? 1 : 0;
}
