// SPDX-License-Identifier: Apache-2.0
// The first part of taking a sample, by ptrace or by signal: threads and mappings. And the last
// part: what is kept of them.
#pragma once

#include <string>

#include "agent/processes/proc_stat.h"
#include "agent/processes/stack_sample.h"
#include "agent/stacks/stack_taker.h"

namespace rollcall {

// Reads the threads and mappings of sample->pid. If false, sample->error has the reason why no
// stacks can be taken. The sample then has the threads with the facts of /proc only. A thread that
// neither way may touch has an error.
bool BeginSample(const std::string& proc_root, const TakeLimits& limits, RawSample* sample);

bool HasPythonFrames(const RawThread& thread);

// Removes the threads that `limits.program_threads` leaves out.
void KeepThreadsOfProgram(const TakeLimits& limits, RawSample* sample);

}  // namespace rollcall
