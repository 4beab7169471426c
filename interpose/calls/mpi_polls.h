// SPDX-License-Identifier: Apache-2.0
// Loops of MPI_Test and MPI_Iprobe.
//
// A thread that does nothing but test waits as much as one inside MPI_Wait. The library notes each
// test that fails, and the time that the thread has spent in such tests. The agent compares these
// with the clock: they show whether the thread does anything else. Any other call to MPI ends the
// loop.
#pragma once

#include "interpose/calls/mpi_messages.h"
#include "interpose/calls/mpi_requests.h"
#include "interpose/ops.h"

namespace rollcall {

// A test that has failed.
struct FailedTest {
  Op op;
  const void* what;  // equal for the same test: the requests, or a number of a probe
  uint64_t began;    // ticks
};

// Notes it. `call`: for what it tests, a collective, or messages if its number is 0.
void NotePoll(ThreadState* thread, const FailedTest& test, const AwaitedCall& call,
              const IssuedMessage* messages, int count);

void EndPolls(ThreadState* thread);

}  // namespace rollcall
