// SPDX-License-Identifier: Apache-2.0
// One thread of another process, stopped by ptrace while its registers are read.
//
// All calls for one thread must come from the thread that seized it. When a tracer thread ends, the
// kernel releases every thread that it still traces: the last resort for a thread that does not
// stop.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "absl/status/status.h"
#include "agent/processes/stack_sample.h"

namespace rollcall {

class TracedThread {
 public:
  explicit TracedThread(pid_t tid) : tid_(tid) {}

  // PermissionDenied if the kernel refuses, NotFound if the thread has ended.
  absl::Status Seize();

  // Asks the thread to stop, and waits. DeadlineExceeded: it did not stop in time, and is still
  // seized.
  absl::Status Stop(int64_t timeout_ns);

  // How the thread came to stop, once it has.
  HowTaken how() const { return how_; }

  absl::Status ReadRegisters(ThreadRegisters* registers) const;

  // Lets the thread go on as before: delivers a pending signal, leaves a stopped thread stopped.
  // False if the thread is not at a stop, so ptrace cannot release it yet.
  bool Release();

 private:
  bool AtStop();

  pid_t tid_;
  HowTaken how_ = HowTaken::kFailed;
  int signal_ = 0;  // to be delivered on release
};

}  // namespace rollcall
