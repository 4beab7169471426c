// SPDX-License-Identifier: Apache-2.0
// What the daemon knows about one job, as plain values: everything that the
// rules read, and nothing else. Built by JobModel, piece by piece as progress
// comes in.
//
// Times are nanoseconds that read like Unix time, on the clock of the reader where
// hosts are live (HostClocks, daemon/server/timeline.h), else of the host that recorded
// them. 0 means "never" or "not known".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "daemon/model/lazy_vector.h"
#include "daemon/model/rank_table.h"
#include "interpose/ops.h"

namespace rollcall {

// The arguments of a call that its ranks must agree on.
struct CallArgs {
  Op op = Op::kNone;
  uint8_t dtype = kNoDtype;
  uint8_t reduction = kNoReduction;
  int32_t peer = kNoPeer;  // root of a rooted collective, peer of a send or receive
  uint64_t count = 0;      // elements, as the caller passed it
  // Of the tensor, "[1024, 4096]" (InternShape()); nullptr: not known. Told, not compared.
  const std::string* shape = nullptr;
};

struct CallRecord {
  uint64_t index = 0;     // nth record of this communicator and rank, from 0, p2p too
  uint64_t position = 0;  // collectives: nth collective, from 0. P2p: collectives entered before it
  CallArgs args;
  int64_t entered_ns = 0;
  int64_t returned_ns = 0;  // 0: still inside, or in a group that has not ended
  uint64_t stream = 0;
  uint64_t caller = 0;  // code address in the process
  uint32_t thread = 0;
  uint16_t site = 0;   // 1 + index into Process::sites: the line that made it; 0: not known
  uint16_t group = 0;  // nth group of its thread (mod 2^16); 0: in no group
  uint8_t result = 0;  // ncclResult_t
  bool captured = false;  // into a CUDA graph: it has not happened, and has no position
  bool replayed = false;  // a launch of a CUDA graph made it
};

// A thread inside a blocking call.
struct BlockedCall {
  uint32_t thread = 0;
  Op op = Op::kNone;
  uint64_t communicator = 0;  // 0: none (a wait for the GPU, a group)
  int64_t since_ns = 0;
};

// What two looks at a process's stacks, a second or more apart, showed.
enum class Motion : uint8_t {
  kUnknown,
  kFrozen,    // the same frames, and no CPU time used
  kSpinning,  // the same frames, using CPU time
  kMoving,    // other frames
};

enum class Liveness : uint8_t {
  kUnknown,  // the agent has not said, or segments are read offline
  kAlive,
  kExited,  // exited normally: there is an exit mark, or the exit code is 0
  kDied,    // without an exit mark, by a signal or with an exit code that is not 0
  kEnded,   // without an exit mark; the exit status is unknown
  kSilent,  // its agent no longer answers
};

// How an agent is heard by now.
struct AgentHeard {
  int64_t heard_ns = 0;    // its newest tick came then
  int64_t tick_ns = 0;     // from one of its ticks to the next
  // It was held, or cut off, until then: no wait of its processes counts from before.
  int64_t counts_from_ns = 0;
  bool stale = false;      // not heard for more than three ticks: what is known of its host is old
  bool silent = false;     // not heard for so long that it is given up
  bool is_settled = true;  // has sent enough ticks for a verdict to rest on them
};

struct AgentState : AgentHeard {
  std::string id;  // of this run of the agent
  std::string host;
};

// What is known of a process once, from its environment and segment.
struct ProcessIdentity {
  std::string host;
  int32_t global_rank = -1;  // -1: the environment gave none
  int32_t world_size = -1;
  int32_t local_rank = -1;
  bool has_segment = false;  // false: the library is loaded but NCCL was never called
#define PROCESS_TEXT(name) std::string name;
#include "proto/facts.def"
};

// What its agent sees of a process from outside, and which calls it stands in.
struct ProcessEvidence {
  Liveness liveness = Liveness::kUnknown;
  int64_t ended_ns = 0;
  int32_t exit_code = -1;   // -1: not known
  int32_t exit_signal = 0;  // 0: none, or not known
  // An exception of Python's that nobody caught: "ValueError: ... at train.py:57"; "": none.
  std::string error;
  int64_t error_ns = 0;
  // Of the training loop, where the program says so (rollcall.h); -1: it does not.
  int64_t step = -1;
  std::string phase;  // "validation"; "": it does not say

  // /proc evidence, as of the last tick.
  char state = '?';         // R, S, D, T, t, Z
  bool cpu_moving = false;  // used CPU time between the last two ticks
  bool traced = false;
  std::string wait_channel;
  double cpu_seconds = 0;     // used so far
  uint64_t memory_bytes = 0;  // resident
  std::vector<BlockedCall> blocked;
#define PROCESS_NUMBER(type, name) type name = 0;
#define PROCESS_COUNT(name) uint64_t name = 0;
#include "proto/facts.def"
};

// One process of the job.
struct Process : ProcessIdentity, ProcessEvidence {
  int32_t agent = -1;  // that speaks for it, in JobState::agents; -1: none, what is known is fresh
  int32_t pid = 0;
  uint64_t start_time = 0;      // clock ticks since boot, as /proc/PID/stat has it; tells pid reuse
  int64_t silent_since_ns = 0;  // kSilent: its agent was heard last then

  std::vector<std::string> sites;  // lines that make calls: "/x/train.py:57 in train_epoch"

  // Of the newest stacks, where some were taken.
  Motion motion = Motion::kUnknown;
  std::string stack_words;  // the functions of all threads, blanks between
  int64_t stacks_ns = 0;    // when they were taken; 0: never
  // Its main thread waits for other ranks in another library than NCCL, and did at
  // every look since then; 0: it does not.
  int64_t waits_outside_since_ns = 0;
  bool has_met = false;  // has been in a communicator, which may be forgotten by now
};

inline bool HasEnded(const Process& process) {
  return process.liveness == Liveness::kExited || process.liveness == Liveness::kDied ||
         process.liveness == Liveness::kEnded;
}

enum class MemberState : uint8_t {
  kInitializing,  // inside a call that creates the communicator
  kReady,
  kFinalizing,  // inside CommFinalize or CommDestroy
  kFinalized,
  kDestroyed,
  kAborted,
  kRevoked,
  kFailed,  // creation returned an error
};

// The running signature of the `position` collectives before it.
struct Checkpoint {
  uint64_t position = 0;
  uint64_t signature = 0;
};

// Sends and receives with one peer, in the order of issue; the nth send matches
// the peer's nth receive.
struct PeerTraffic {
  int32_t peer = -1;  // rank in the communicator
  uint32_t sends = 0, receives = 0;
};

// The launch of a CUDA graph that holds calls of a communicator.
struct GraphLaunch {
  uint32_t graph = 0;         // nth graph of the process that holds calls, from 1
  uint64_t launch = 0;        // of this graph, from 1
  uint64_t first_record = 0;  // CallRecord::index of its first call
  uint64_t records = 0;       // so many calls
};

// How far one rank of a communicator is: what its agent reports. There may be millions: see
// docs/decisions/diagnosis.md before adding one.
struct CommFacts {
#define COMM_COUNT(type, name) type name = 0;
#define COMM_SEEN(type, name) type name = 0;
#define COMM_TIME(name) int64_t name##_ns = 0;
#define COMM_WAIT(name) int64_t name##_ns = 0;
#include "proto/facts.def"
  int32_t device = -1;
  uint32_t records_lost = 0;
  MemberState state = MemberState::kInitializing;
  uint8_t async_error = 0;         // last ncclResult_t that is an error
  bool has_markers = false;        // started and finished are written by the GPU
  bool has_graph_markers = false;  // the GPU says which call of a graph it has come to
};

// One rank of one communicator.
struct Member : CommFacts {
  Member() : concurrent_use(false), may_wait(false), is_over(false) {}

  // The position of the collective that it waits for, if it does, as its markers say.
  uint64_t Awaits() const { return awaited == 0 ? finished : awaited - 1; }

  bool concurrent_use : 1;  // calls of two threads overlapped
  bool may_wait : 1;        // it waits, or only its process could tell
  bool is_over : 1;         // it has left the communicator, so it can hang no more
  int32_t process = -1;     // index into JobState::processes

  LazyVector<Checkpoint> checkpoints;      // the newest, by position
  LazyVector<CallRecord> records;          // the newest, by index; may start late or have gaps
  LazyVector<PeerTraffic> traffic;         // of the records seen, by peer
  LazyVector<GraphLaunch> graph_launches;  // the newest, in order
};

// How long calls of one kind usually take, from the first rank's entering to
// the end.
struct UsualDuration {
  Op op = Op::kNone;
  uint8_t size_class = 0;  // of the count: its number of binary digits
  uint32_t seen = 0;
  int64_t longest_ns = 0;  // fades slowly, so that one bad step is forgotten
};

// Who comes last to the calls of a communicator, over the newest of them.
struct Arrivals {
  uint32_t calls = 0;       // that all ranks have come to and that were looked at
  int32_t last_rank = -1;   // that came last most often; in the communicator
  uint32_t last_calls = 0;  // so often
  int64_t late_ns = 0;      // its median distance to the one before it
  int64_t interval_ns = 0;  // mean time from call to call
};

struct Communicator {
  uint64_t id = 0;
  uint64_t parent = 0;        // 0: none
  std::string name;           // "" where nobody gave one
  int32_t size = 0;           // as the first member told it
  int32_t other_size = 0;     // as another one told it; 0: all agree
  RankTable<Member> members;  // those not heard of are not in it
  LazyVector<int32_t> seats;  // processes by rank, where they are told beforehand (dumps do)
  std::vector<UsualDuration> usual;
  Arrivals arrivals;
  // Raised with every change that a rule could see, of members and of their
  // processes. 0: nobody keeps it, nor what follows.
  uint64_t version = 0;
  // False: the signatures of all members that could be compared are equal.
  bool may_diverge = false;
  int32_t may_wait = 0;        // members that do
  bool keeps_records = false;  // of every member: the job is not too large for that
};

struct JobState {
  std::string name;
  bool offline = false;  // read from files: nobody can say whether processes live
  std::vector<AgentState> agents;
  int64_t counts_from_ns = 0;  // the daemon was held until then: no wait counts from before
  std::vector<Process> processes;
  absl::btree_map<uint64_t, Communicator> communicators;  // by id
};

struct Limits {
  int64_t hang_after_ns = 60'000'000'000;  // a wait is a hang then
  // A wait is worth a first look when it is so many times as long as is usual
  // for its communicator, operation and size, but not before the floor, and at
  // the latest at the ceiling; also where nothing is usual yet.
  int64_t suspect_times_usual = 10;
  int64_t suspect_floor_ns = 5'000'000'000;
  int64_t suspect_after_ns = 15'000'000'000;  // the ceiling; below hang_after_ns
  // A wait for somebody who has left (exited, died) cannot end; this much only
  // keeps the ordinary end of a job, whose ranks leave one by one, from alarm.
  int64_t absent_for_good_ns = 5'000'000'000;
  // Between the two samples of stacks that show who moves.
  int64_t stacks_apart_ns = 5'000'000'000;
};

}  // namespace rollcall
