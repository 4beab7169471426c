// SPDX-License-Identifier: Apache-2.0
// One thread of another process, stopped by ptrace while its registers are read.
//
// All calls for one thread must come from the thread that seized it. A tracer that ends lets go
// of everything it still traces: that is the last resort for a thread that does not stop.
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

  // Asks the thread to stop and waits. DeadlineExceeded if it does not: it then still is seized.
  absl::Status Stop(int64_t timeout_ns);

  // How the thread came to stop, once it has.
  HowTaken how() const { return how_; }

  absl::Status ReadRegisters(ThreadRegisters* registers) const;

  // Lets the thread go on as it was: a signal that was on its way is delivered, a stopped thread
  // stays stopped. False if it is not at a stop, so cannot be let go of yet.
  bool Release();

 private:
  bool AtStop();

  pid_t tid_;
  HowTaken how_ = HowTaken::kFailed;
  int signal_ = 0;  // to be delivered on release
};

}  // namespace rollcall
