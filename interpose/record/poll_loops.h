// SPDX-License-Identifier: Apache-2.0
// Loops of the calls that calls.def has as tests: MPI_Test, UCC's ucc_context_progress and others.
//
// A thread that does nothing but test waits as much as one inside MPI_Wait. The library notes each
// test that fails, and the time that the thread has spent in such tests. The agent compares these
// with the clock: they show whether the thread does anything else. Any other call to
// MPI ends the loop. Of UCC's calls only a post, the end of a team and a progress that ends a call
// or finds none open do.
#pragma once

#include "interpose/ops.h"
#include "interpose/record/message_counts.h"
#include "interpose/thread_state.h"

namespace rollcall {

// A test that has failed.
struct FailedTest {
  Op op;
  const void* what;  // equal for the same test: the requests, or a number of a probe
  uint64_t began;    // ticks
};

// Notes it. It tests calls on `comm`: 1 + the position of a collective, or 0 and messages.
void NotePoll(ThreadState* thread, const FailedTest& test, const LocalComm* comm, uint64_t number,
              const IssuedMessage* messages, int count);

void EndPolls(ThreadState* thread);

}  // namespace rollcall
