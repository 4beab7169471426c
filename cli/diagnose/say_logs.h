// SPDX-License-Identifier: Apache-2.0
// The ends of the logs of a job's ranks, in words. Pure.
#pragma once

#include <string>

#include "daemon/looks/judge.h"

namespace rollcall {

// The file of a report that has all of them. `rollcall report --anonymize` leaves it out.
inline constexpr char kLogsFile[] = "logs.txt";

// Returns for a terminal the last lines of the logs of the first culprits, without culprits of any.
// Empty if there is none.
std::string LogsInShort(const LookedAtJob& job);

// The text of kLogsFile; empty without logs.
std::string LogsInFull(const LookedAtJob& job);

}  // namespace rollcall
