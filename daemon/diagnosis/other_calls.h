// SPDX-License-Identifier: Apache-2.0
// Ranks that wait in the background: a thread of each waits in a call of gloo, while their programs
// go on in other calls, as a checkpoint does that is written beside the training.
#pragma once

#include "daemon/model/verdict.h"

namespace rollcall {

// As long as all ranks of the verdict, culprits and waiting ones, enter calls on other
// communicators, the job does not stand still: the wait counts from the newest call of the rank
// that is the first to make no more. A call of NCCL holds its own stream up, and the host's calls
// only queue behind it, so they show nothing.
void WeighOtherCalls(const JobState& job, Verdict* verdict);

}  // namespace rollcall
