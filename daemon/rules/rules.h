// SPDX-License-Identifier: Apache-2.0
// The detection rules and their table.
//
// A rule is a pure function: no clock, lock, log, protobuf or RPC. It returns a verdict
// without summary and advice, and does not depend on other rules; Diagnose() puts causes
// before effects. A rule returns a wait once it is long enough to be suspected, and a
// contradiction at once.
//
// To add a rule: its file here, its declaration below, a line in a table
// (rules.cc) or in Diagnoser::Run(), its cases in
// tests/unit/daemon/diagnosis/rules.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"
#include "daemon/rules/blame.h"

namespace rollcall {

// Judges one stuck call.
using CallRule = std::optional<Verdict> (*)(const Suspicion& suspicion);

// Ranks whose process ended without an exit mark while others wait for them. At most `likely` if
// the exit status is unknown.
std::optional<Verdict> JudgeDiedRanks(const Suspicion& s);
// Ranks that exited normally and owe a call that others wait in.
std::optional<Verdict> JudgeExitedRanks(const Suspicion& s);
// Ranks of silent hosts.
std::optional<Verdict> JudgeLostHosts(const Suspicion& s);
// Ranks on which NCCL reported an error while others wait.
std::optional<Verdict> JudgeNcclErrors(const Suspicion& s);
// Ranks of which two threads were inside calls on the communicator at the same time.
std::optional<Verdict> JudgeConcurrentUse(const Suspicion& s);
// Ranks that have not joined a communicator whose creation others wait in.
std::optional<Verdict> JudgeIncompleteCreation(const Suspicion& s);
// Live ranks that have not entered a collective that others wait in.
std::optional<Verdict> JudgeMissingRanks(const Suspicion& s);
// Ends of a message with different sizes are compared once a rank has waited in one for this long:
// most messages are over by then.
inline constexpr int64_t kCompareSizesAfterNs = 300'000'000;
// Peers that have not issued the other end of a send or receive, or have issued one with a
// different size.
std::optional<Verdict> JudgeUnmatchedP2p(const Suspicion& s);
// Ranks whose host has made the call but whose GPU has not started it.
std::optional<Verdict> JudgeBlockedStarts(const Suspicion& s);
// Calls that all ranks have entered but that do not finish.
std::optional<Verdict> JudgeStalledCalls(const Suspicion& s);
// Ranks for which others wait in CommFinalize, CommDestroy or CommAbort.
std::optional<Verdict> JudgeTeardownHangs(const Suspicion& s);

// Live ranks that do not wait for a key of a store for which others wait, and have not set it.
std::optional<Verdict> JudgeKeyNotSet(const Suspicion& s);

const std::vector<CallRule>& CallRules();

// Ranks that called a different operation at the same position, or the same operation with
// different arguments. Diagnose() fills in the length of the wait.
std::vector<Verdict> JudgeMismatches(const JobState& job, const Communicator& comm);

// Ranks for which others wait in torch's store, in a job of which no rank has been in a
// communicator yet. The verdict rests on stacks alone.
std::optional<Verdict> JudgeStart(const JobState& job, int64_t now_ns, const Limits& limits);
// True if the job uses NCCL: it has a communicator, or a live process has a segment or is inside a
// call. Then JudgeStart() finds nothing.
bool HasStarted(const JobState& job);
// How long the daemon takes to sample the stacks of all ranks once while they start, including the
// pause after the round. JudgeStart() ignores stacks that are older than two such rounds.
int64_t StartRoundNs(size_t ranks, const Limits& limits);
inline constexpr size_t kStartPortion = 256;  // processes that the daemon samples in a second

// True if one rank of the communicator is nearly always last, by a wide margin.
bool IsStraggling(const Communicator& comm);
// Warns of that rank; nothing hangs.
std::vector<Verdict> JudgeStragglers(const JobState& job, const Communicator& comm, int64_t now_ns);

// Judges several calls that wait for each other. `cycle`: indices of the calls; each call
// waits for ranks that wait in another call of the cycle.
std::optional<Verdict> JudgeDeadlock(const JobState& job, const StuckCalls& calls,
                                     const std::vector<size_t>& cycle, int64_t now_ns,
                                     const Limits& limits);

// Like JudgeDeadlock(), for a cycle that a skipped or extra send or receive explains: a rank's own
// past shows which. None if it does not show it.
std::optional<Verdict> JudgeCycleByPast(const JobState& job, const StuckCalls& calls,
                                        const std::vector<size_t>& cycle, int64_t now_ns,
                                        const Limits& limits);
// The same for one send or receive, by the calls in which its two ranks wait.
std::optional<Verdict> JudgeP2pByPast(const JobState& job, const StuckCalls& calls, size_t call,
                                      int64_t now_ns, const Limits& limits);
// Like JudgeDeadlock(), for a cycle of sends and receives that one rank has left for a call which
// is in no step of its past.
std::optional<Verdict> JudgeLeftStep(const JobState& job, const StuckCalls& calls,
                                     const std::vector<size_t>& cycle, int64_t now_ns,
                                     const Limits& limits);
// Like JudgeDeadlock(), for sends and receives without their other ends that one wrong rank
// explains. None if several ranks may be wrong.
std::optional<Verdict> JudgeCycleByMajority(const JobState& job, const StuckCalls& calls,
                                            const std::vector<size_t>& cycle, int64_t now_ns,
                                            const Limits& limits);

// Like JudgeDeadlock(), for batches of sends and receives of which some lack a call that each batch
// before had. The ranks of these batches are the culprits.
std::optional<Verdict> JudgeLackingBatch(const JobState& job, const StuckCalls& calls,
                                         const std::vector<size_t>& cycle, int64_t now_ns,
                                         const Limits& limits);
// Like JudgeDeadlock(), for a collective that most ranks wait in, while the others wait for these
// in sends or receives. None if the number of sends and receives does not show who left out a call.
std::optional<Verdict> JudgeLeftCollective(const JobState& job, const StuckCalls& calls,
                                           const std::vector<size_t>& cycle, int64_t now_ns,
                                           const Limits& limits);
// Like JudgeDeadlock(), for a collective of one library that most ranks wait in, while the others
// wait for these in a collective of another library. None if no side has a majority.
std::optional<Verdict> JudgeLeftLibrary(const JobState& job, const StuckCalls& calls,
                                        const std::vector<size_t>& cycle, int64_t now_ns,
                                        const Limits& limits);
// Like JudgeDeadlock(), for a rank that waits alone in a collective while several ranks wait for it
// alone elsewhere. None if there is no such rank, or several.
std::optional<Verdict> JudgeLeftAlone(const JobState& job, const StuckCalls& calls,
                                      const std::vector<size_t>& cycle, int64_t now_ns,
                                      const Limits& limits);
// Like JudgeDeadlock(), for a send or receive whose peer has gone on to another call. Both ranks
// are culprits. None if the sides of the cycle are alike: then no call is missing.
std::optional<Verdict> JudgeUnmatchedTie(const JobState& job, const StuckCalls& calls,
                                         const std::vector<size_t>& cycle, int64_t now_ns,
                                         const Limits& limits);

// Like JudgeDeadlock(), for ranks inside the creation of a communicator while its other ranks wait
// for them in another call. None if neither side has a majority.
std::optional<Verdict> JudgeForkedCreation(const JobState& job, const StuckCalls& calls,
                                           const std::vector<size_t>& cycle, int64_t now_ns,
                                           const Limits& limits);

// Like JudgeDeadlock(), for a cycle of collectives in which some ranks make their calls in another
// order than in their earlier steps: these alone are the culprits. None if the ranks' own pasts do
// not show it.
std::optional<Verdict> JudgeOrderByPast(const JobState& job, const StuckCalls& calls,
                                        const std::vector<size_t>& cycle, int64_t now_ns,
                                        const Limits& limits);

// Calls on several communicators that all ranks have entered, but in different orders: their
// kernels may block each other on the GPU.
std::optional<Verdict> JudgeOrderInversion(const JobState& job, const StuckCalls& calls,
                                           int64_t now_ns, const Limits& limits);

}  // namespace rollcall
