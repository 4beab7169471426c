// SPDX-License-Identifier: Apache-2.0
// What both ways of taking stacks begin with.
#pragma once

#include <string>

#include "agent/processes/proc_stat.h"
#include "agent/processes/stack_sample.h"
#include "agent/stacks/stack_taker.h"

namespace rollcall {

// Reads threads and mappings of sample->pid. False: sample->error says why there is nothing to
// take. The threads are in the sample, with nothing but what /proc says; those that neither way
// touches have an error.
bool BeginSample(const std::string& proc_root, const TakeLimits& limits, RawSample* sample);

}  // namespace rollcall
