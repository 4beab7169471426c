// SPDX-License-Identifier: Apache-2.0
// What the stacks of the culprits show beside their lines: the exceptions that they handle, what
// they wait for outside of the job, the ranks at the other end of their sockets, and the
// threads that keep their processes alive.
//
// After AddPlaces() and WeighAge().
#pragma once

#include "daemon/model/verdict.h"

namespace rollcall {

// A rank that waits for a working process of its own, or for bytes that arrive, is late and does
// not hang: the wait counts from the time at which these were last seen to move.
void WeighOutsideWork(const JobState& job, Verdict* verdict);

// An exception that a waiting rank handles, too, explains nothing.
void AddHandledException(Verdict* verdict);

// An exception that has ended the program of a culprit, whose process lives on: it runs what the
// program has registered for its exit, or waits for a thread.
void AddLastException(const JobState& job, Verdict* verdict);

// An exception that has ended a thread of a culprit: its main thread waits for that thread, or goes
// on without it.
void AddThreadFailures(const JobState& job, Verdict* verdict);

void AddSocketWait(const JobState& job, Verdict* verdict);

void AddKeeper(const JobState& job, Verdict* verdict);

}  // namespace rollcall
