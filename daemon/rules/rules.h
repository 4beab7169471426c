// The table of detection rules.
//
// A rule is a pure function: no clock, lock, log, protobuf or RPC. It returns
// what it found, in any order, without summary and advice, and knows nothing of
// the other rules; Diagnose() puts causes before effects. Waits are returned
// once they are long enough to be suspected, contradictions at once.
//
// To add one: a file of its own, a line here and in the table, its cases in
// tests/unit.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"

namespace rollcall {

using Rule = std::vector<Verdict> (*)(const JobState& job, int64_t now_ns, const Limits& limits);

// Ranks that live and have not entered a call that others wait in.
std::vector<Verdict> FindMissingRanks(const JobState& job, int64_t now_ns, const Limits& limits);

// Ranks that left in good order and owe a call that others wait in.
std::vector<Verdict> FindExitedRanks(const JobState& job, int64_t now_ns, const Limits& limits);

// Ranks whose process is gone without an exit mark, while others wait for them.
std::vector<Verdict> FindDiedRanks(const JobState& job, int64_t now_ns, const Limits& limits);

// Ranks that called another operation than the others at the same position.
std::vector<Verdict> FindOperationMismatches(const JobState& job, int64_t now_ns,
                                             const Limits& limits);

// Ranks that called the same operation with other arguments.
std::vector<Verdict> FindArgumentMismatches(const JobState& job, int64_t now_ns,
                                            const Limits& limits);

// Ranks that have not joined a communicator whose creation others wait in.
std::vector<Verdict> FindIncompleteCommunicators(const JobState& job, int64_t now_ns,
                                                 const Limits& limits);

// Calls that all ranks are in and that do not finish.
std::vector<Verdict> FindStalledCalls(const JobState& job, int64_t now_ns, const Limits& limits);

const std::vector<Rule>& AllRules();

}  // namespace rollcall
