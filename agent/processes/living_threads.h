// SPDX-License-Identifier: Apache-2.0
// Finds the living threads of a process, so that the agent can ignore calls of ended threads: a
// thread that is cancelled or ends inside a call leaves its entry in the segment unchanged.
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

// Returns the living threads with their start times (ProcStat::start_time), by tid in the process's
// own pid namespace. Without `other_numbers` only those among `own_tids`. The kernel reuses tids: a
// thread that started after a call did not make that call. `other_numbers`: the process has a pid
// namespace in which its pid differs from `process`. nullopt if some thread could not be read, so
// no thread is proven to have ended.
std::optional<std::map<pid_t, uint64_t>> FindThreads(const std::string& proc_root,
                                                     ProcessId process,
                                                     const std::vector<pid_t>& own_tids,
                                                     bool other_numbers);

// Converts a start time to the clock of SteadyNs(). The result is too early by the time for which
// the host has been suspended since.
int64_t BeganAtSteadyNs(uint64_t start_time);

}  // namespace rollcall
