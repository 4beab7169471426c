// SPDX-License-Identifier: Apache-2.0
// Verdicts, the output of the rules. Plain values; proto/rollcall/v1/incident.proto has
// the same fields.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/model/job_key.h"
#include "daemon/model/job_state.h"
#include "daemon/model/network_state.h"
#include "daemon/model/rank_range.h"
#include "daemon/model/stack_departure.h"
#include "daemon/model/stand_kinds.h"

namespace rollcall {

// The causes, with their spelling in incident.json. Ties in the order of verdicts break
// by the order here: the cause that explains more comes first.
#define ROLLCALL_CAUSES(X)                       \
  X(kRankDied, "rank_died")                      \
  X(kConcurrentUse, "concurrent_use")            \
  X(kOperationMismatch, "operation_mismatch")    \
  X(kArgumentMismatch, "argument_mismatch")      \
  X(kNcclError, "nccl_error")                    \
  X(kRankExited, "rank_exited")                  \
  X(kHostLost, "host_lost")                      \
  X(kInitIncomplete, "init_incomplete")          \
  X(kMissingRank, "missing_rank")                \
  X(kUnmatchedP2p, "unmatched_p2p")              \
  X(kDeadlock, "deadlock")                       \
  X(kBlockedBeforeStart, "blocked_before_start") \
  X(kStalledInFlight, "stalled_in_flight")       \
  X(kStandstill, "standstill")                   \
  X(kTeardownHang, "teardown_hang")              \
  X(kStraggler, "straggler")

enum class Cause : uint8_t {
#define X(name, text) name,
  ROLLCALL_CAUSES(X)
#undef X
};
const char* CauseName(Cause cause);

enum class Certainty : uint8_t { kPossible, kLikely, kCertain };
const char* CertaintyName(Certainty certainty);

// A contradiction is proven at once; a wait becomes a hang with time.
constexpr bool IsContradiction(Cause cause) {
  return cause == Cause::kOperationMismatch || cause == Cause::kArgumentMismatch;
}

// A warning: nothing hangs. The screen shows it; it never opens an incident.
constexpr bool IsWarning(Cause cause) { return cause == Cause::kStraggler; }

struct OtherJob {
  JobKey key;
  int32_t rank = -1;  // -1 if unknown
};

struct Culprit {
  int32_t process = -1;  // index into JobState::processes; -1 if its process is not known
  int32_t rank = -1;     // global where known, else in the communicator
  // If not -1, the number of its process, which holds several ranks; `rank` is the communicator's.
  int32_t process_rank = -1;
  // More than 1: stands for this many neighbours from `rank` on, without known processes.
  int32_t ranks = 1;
  std::string host;
  int32_t pid = 0;  // 0 if unknown
  int32_t device = -1;
  // mismatches: the call that it made instead; errors: the call that NCCL refused
  CallArgs call;
  int32_t nccl_result = 0;  // ncclResult_t that NCCL reported to it; 0 means no error
  bool is_refused = false;  // NCCL refused its creating call
  uint64_t entered = 0;     // number of collectives that it has entered on the communicator
  std::string error;   // the exception that ended it: "ValueError: ... at train.py:57", or empty
  bool exits = false;  // it has ended its program, but not its process
  // The exception that ended a thread of it while its main thread lives on, and the thread's name;
  // empty if no such exception matters.
  std::string thread_error, failed_thread;
  // How it ended or left: "exited normally", "killed by signal 9"; empty if it did not.
  std::string ending;
  char state = '?';  // of its process, as in /proc
  std::string wait_channel;
  int32_t exit_code = -1;   // -1 if unknown, or it lives
  int32_t exit_signal = 0;  // 0 if there is none
  std::string site;         // the line that made `call`, or its last call; empty if unknown
  int64_t step = -1;        // of its training loop; -1 if unknown
  std::string phase;
  // Set for another job that shares a communicator or a store with the verdict's: which one, and
  // the number of its rank there. nullopt means the verdict's own job.
  std::optional<OtherJob> other_job;
  int32_t inner_pid = 0;  // this and the fields below as in ProcessIdentity
  int64_t uid = -1;
#define PROCESS_PLACE(name) std::string name;
#include "proto/facts.def"
};

RankRange CulpritRange(const Culprit& culprit);
std::vector<RankRange> CulpritRanges(const std::vector<Culprit>& culprits);
// The number of ranks that are culprits.
size_t CountCulprits(const std::vector<Culprit>& culprits);

// How the culprits' history differs from the history of the others.
enum class DivergenceKind : uint8_t {
  kNone,
  kReplaced,  // a different call at the same position
  kExtra,     // calls that the others did not make
  kSkipped,   // no call where the others made one
  kSwapped,   // the same calls in a different order
};

// One line of two histories side by side. op kNone: that side has no such call.
struct AlignedCall {
  uint64_t position = 0;          // of the others' call
  uint64_t culprit_position = 0;  // of the culprits' call
  CallArgs others;
  CallArgs culprits;
  std::string others_site = {}, culprits_site = {};  // of the calls; empty if unknown
};

// One edge of a wait-for chain or cycle: `from` waits in this call for `to`. A chain begins
// at the consequence and ends at the root. Ranks are global where known.
struct WaitEdge {
  std::vector<int32_t> from;
  std::vector<RankRange> to;
  uint64_t communicator = 0;
  std::string communicator_name;
  CommKind communicator_kind = CommKind::kNccl;
  int32_t communicator_size = 0;
  uint64_t position = 0;  // of the collective. P2p: number of collectives before the call
  CallArgs call;
};

// The position of a call among the launches of a CUDA graph.
struct GraphCall {
  uint32_t graph = 0;   // nth graph of the process that contains calls, from 1, or 0
  uint64_t launch = 0;  // nth launch of this graph, from 1
  uint64_t call = 0;    // nth of the graph's calls on the communicator, from 1
  uint64_t calls = 0;   // number of the graph's calls on the communicator
};

// A fact about a host that is evidence for a verdict.
struct HostEvidence {
  HostFactKind kind = HostFactKind::kUnknown;
  std::string host;
  std::string subject;  // as in HostFact, like the next
  int32_t pid = 0;
};

// Where a rank stands in the program.
struct RankPlace {
  int32_t rank = -1;
  std::string at;
};

// An exception that a rank handles.
struct RankException {
  int32_t rank = -1;
  PlaceException exception;
};

// What a rank waits for outside of the job and moves, as in Process.
struct RankOutside {
  int32_t rank = -1;  // -1 if there is none
  std::vector<ChildAtWork> children;
  double receives = 0;
};

// A rank that waits for what other ranks of its host write into a socket or pipe.
struct RankSocket {
  int32_t rank = -1;
  std::vector<int32_t> others;  // global ranks
  bool they_wait = false;       // in the call that the verdict is about
};

// A thread for which the process of a rank waits before it ends.
struct RankKeeper {
  int32_t rank = -1;  // -1 if there is none
  ThreadPlace thread;
};

// What is wrong with ranks that others wait for before the first NCCL call.
enum class StartFault : uint8_t {
  kNone,            // the verdict is about an NCCL call
  kNotReached,      // they have not reached the point where the others wait
  kNotStarted,      // no process of theirs is known
  kOtherSize,       // they got another WORLD_SIZE
  kWaitsElsewhere,  // they wait at another point of the program
  kAllWait,         // there is no such rank: all wait at one point
};

// Why the culprits of a standstill are these.
enum class StandShape : uint8_t {
  kNone,  // the verdict is about a call
#define STAND_SHAPE(name, word, meaning) name,
#include "daemon/model/stand_shapes.def"
};
// As in incident.json; empty means kNone.
const char* StandShapeName(StandShape shape);

// How the ranks of a standstill wait.
struct Standstill {
  StandShape shape = StandShape::kNone;
  StandKind in = StandKind::kUnknown;         // of the culprits; of all, if there are none
  StandKind others_in = StandKind::kUnknown;  // of those that wait
  bool others_wait_for_them = false;          // by what their stacks show
  bool writes = false;                        // they put into a queue or write into a pipe
  bool two_locks = false;                     // two threads of the first culprit wait for locks
  bool in_handler = false;                    // the first culprit is in a handler of a signal
  bool other_is_stopped = false;              // a signal has stopped the child for which it waits
  bool lacks_worker = false;                  // in Ray, and no worker that it has called is at work
  std::string others;  // for whom they wait: "its child 4711 (cat)", "process 812"; empty if
                       // unknown
  std::string on;      // the file that they wait to lock, or hold; empty if unknown
  std::string server;  // kOwnServer: "child process 812 (python)"
  StandKind server_in = StandKind::kUnknown;  // kOwnServer: what that one waits in
  // The function of a thread that the first culprit lacks and the others have: "prefetch", or
  // empty.
  std::string lacks_thread;
  // Of the culprits that do not stand where their main threads do, in their order; of the others
  // without functions.
  std::vector<StackPlace> places = {};
};

struct Advice {
  std::string id;
  std::string text;
};

struct Verdict {
  Cause cause = Cause::kMissingRank;
  Certainty certainty = Certainty::kPossible;
  std::vector<Culprit> culprits;
  std::vector<int32_t> waiting_ranks;      // global where known
  std::vector<int32_t> waiting_processes;  // their indices into JobState::processes

  uint64_t communicator = 0;
  std::string communicator_name;
  CommKind communicator_kind = CommKind::kNccl;
  int32_t communicator_size = 0;

  uint64_t position = 0;
  // Mismatches: the call of the majority. Creation of a communicator: the creating call.
  // op kNone: its record is lost.
  CallArgs call;
  std::string site;       // the line of a waiting rank that made the call; empty if unknown
  int64_t step = -1;      // of most waiting ranks; -1 if unknown
  std::string phase;      // of the same ranks
  GraphCall graph;        // set if a launch of a graph made the call on a waiting rank
  bool captured = false;  // culprits have captured the call into a graph instead of making it
  // The culprits are servers that wait for requests, or all ranks wait for keys of a store before
  // their first call. If no request and no work is due, nothing hangs: no wait is confirmed by
  // this.
  bool is_idle = false;
  // Only threads beside the main one wait, and their ranks are not known to stand. Such a thread
  // may serve requests: then the verdict is idle.
  bool waits_beside = false;
  // init_incomplete: the culprits are processes with one rank of the communicator.
  bool is_one_rank = false;
  int32_t claimed_rank = -1;  // then: that rank, as the communicator counts
  std::string unclaimed;      // then: the ranks that no process has, "rank 3", or empty
  // init_incomplete: the process of a culprit is not known, but each rank of the job has one that
  // lives.
  bool all_ranks_live = false;
  // Mismatches: the culprit's call is one of the step that it repeats.
  bool odd_call_is_usual = false;
  // Mismatches: the culprit has always made its call in this place, but on another communicator.
  bool is_usual_elsewhere = false;
  StartFault start_fault = StartFault::kNone;
  // The key of a store for which the waiting ranks wait, or the ranks that got another WORLD_SIZE;
  // empty if they wait for several keys, or unknown.
  std::string awaited_key;
  Standstill standstill;
  // Two threads of the culprits make calls that nothing orders.
  bool unordered_threads = false;
  // stalled_in_flight: another communicator's call that is open on the same devices, and that
  // nothing orders with this one: "AllReduce #3 on communicator "b"", or empty.
  std::string beside;
  NetworkWalk network;  // stalled_in_flight: what the network states show
  // If not 0, the divergence is at `position` or later, but before this. 0 if it is at `position`.
  uint64_t position_end = 0;

  std::vector<std::string> mismatched_fields;
  DivergenceKind divergence = DivergenceKind::kNone;
  std::vector<AlignedCall> histories;  // around the divergence, if records are left
  std::vector<WaitEdge> chain;         // deadlocks: the cycle. Consequences: the path to the root
  // The culprits make progress outside NCCL (CPU time, changing stacks): they may still enter
  // the call.
  bool late = false;
  // What the culprits wait for outside of the job has moved during this wait.
  bool outside_moved = false;
  // What their stacks show besides, of the first culprit of which it is known.
  RankException handled;
  RankOutside outside;
  RankSocket socket;
  RankKeeper keeper;
  int64_t late_ns = 0;  // stragglers: the usual time from the other ranks to the culprit
  // Where culprits[i] stands, by stacks taken during the wait; of the first culprits only.
  std::vector<StackPlace> places;
  // Its ranks count in the communicator, because a process holds several of them. Then the lines of
  // the first waiting ranks, each by its own thread.
  bool of_communicator = false;
  std::vector<RankPlace> waiting_places;
  // concurrent_use: the lines of the first culprit's threads that make calls, if there are several.
  std::vector<StackPlace> thread_places;
  StackPlace waiting_place;  // of the first waiting rank whose stacks are known
  StackDeparture departure;  // of the first culprit with a place, from that waiting rank
  std::string stack_words;   // the functions on the culprits' stacks, separated by blanks
  // When the first rank began to wait. Contradictions: when the second side made its call.
  int64_t since_ns = 0;
  int64_t waited_ns = 0;
  // Read from files, which end with the last sign of the job: the ranks have waited for longer.
  bool is_at_least = false;
  // The wait counts from this time on if it is later than `since_ns`: before it the daemon, or
  // the agent of a waiting rank or a culprit, was stopped, or what the culprits wait for moved. A
  // culprit that may only be slow on a starved host sets it later than that.
  int64_t counts_from_ns = 0;
  // Age of the oldest report that the verdict rests on. Records that contradict each other and
  // ends of processes do not age. `missing_evidence` names silent hosts, which do not count here.
  int64_t evidence_age_ns = 0;
  bool stale = false;      // a report is older than three ticks; a newer one may still arrive
  bool unsettled = false;  // it rests on an agent that has sent too few ticks, or on a mixed state
  // Contradictions: ranks that have not made the call yet can still decide which side is the
  // majority, or names of threads show that no rank is wrong.
  bool may_turn = false;
  // The verdict needs no long wait: the culprits have failed and cannot enter the call.
  bool at_once = false;
  bool is_consequence = false;  // another verdict explains this one
  std::string summary;          // one sentence
  std::vector<std::string> evidence;
  std::vector<std::string> missing_evidence;
  std::vector<HostEvidence> host_evidence;  // the gravest first
  std::vector<Advice> advice;
};

// Of a call that all ranks have made and that does not end: whether the culprits have made it, do
// not wait for it, and hold it up nonetheless, as MPI goes on with it only inside of its calls.
bool AreCulpritsElsewhere(const Verdict& verdict);

}  // namespace rollcall
