// SPDX-License-Identifier: Apache-2.0
// What the stacks of the culprits show beside their lines: the exceptions that they handle, the
// processes of their own that they wait for, the ranks at the other end of their sockets, and the
// threads that keep their processes alive.
//
// After AddPlaces() and WeighAge().
#pragma once

#include "daemon/model/verdict.h"

namespace rollcall {

// Waits for processes that work are late, and no hang: the wait counts from the time at which they
// were last seen to work.
void WeighWorkingChildren(const JobState& job, Verdict* verdict);

// An exception that a waiting rank handles, too, explains nothing.
void AddHandledException(Verdict* verdict);

// An exception that has ended the program of a culprit, which makes calls on its way out.
void AddLastException(const JobState& job, Verdict* verdict);

void AddSocketWait(const JobState& job, Verdict* verdict);

void AddKeeper(const JobState& job, Verdict* verdict);

}  // namespace rollcall
