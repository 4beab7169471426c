// SPDX-License-Identifier: Apache-2.0
// Which threads of a process are there, so that a call is not believed of one that has gone: a thread
// that is cancelled inside a call, or ends there, leaves its entry in the segment as it is.
//
// May block: see spare_threads.h.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/processes/process_id.h"

namespace rollcall {

// Of the threads that call themselves `own_tids`, those that are there, to their start times as
// ProcStat has them. Numbers are given again: who began after a call did not make it.
// `other_numbers`: the process sees itself by other numbers than `process`. nullopt: not all of it
// can be read, so that no thread is known to be gone.
std::optional<std::map<pid_t, uint64_t>> FindThreads(const std::string& proc_root,
                                                     ProcessId process,
                                                     const std::vector<pid_t>& own_tids,
                                                     bool other_numbers);

// When that was by SteadyNs(), or earlier: the host may have been suspended since.
int64_t BeganAtSteadyNs(uint64_t start_time);

}  // namespace rollcall
