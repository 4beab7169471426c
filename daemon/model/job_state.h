// SPDX-License-Identifier: Apache-2.0
// The state of one job, as plain values: everything that the rules read, and nothing
// else. JobModel builds it from the reports of the agents.
//
// Times are nanoseconds since the Unix epoch: by the clock of the reader for live hosts
// (HostClocks, daemon/jobs/timeline.h), else by the clock of the host that recorded
// them. 0 means "never" or "not known".
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/strings/string_view.h"
#include "daemon/model/host_facts.h"
#include "daemon/model/job_key.h"
#include "daemon/model/lazy_vector.h"
#include "daemon/model/network_state.h"
#include "daemon/model/rank_table.h"
#include "daemon/model/stack_place.h"
#include "daemon/model/standing.h"
#include "interpose/ops.h"

namespace rollcall {

// The arguments of a call on which its ranks must agree.
struct CallArgs {
#define RECORD_ARGUMENT(model, type, name, none) model name = none;
#include "proto/record_columns.def"
  // Shape of the tensor, "[1024, 4096]" (InternShape()); nullptr if unknown. The rules do not
  // compare it.
  const std::string* shape = nullptr;
};

struct CallRecord {
  uint64_t index = 0;     // nth record of this communicator and rank, from 0, p2p too
  uint64_t position = 0;  // collective: nth one, from 0. P2p: number of collectives before it
  CallArgs args;
  int64_t entered_ns = 0;
  int64_t returned_ns = 0;  // 0 if still in the call, or in a group that has not ended
#define RECORD_FACT(type, name) type name = 0;
#include "proto/record_columns.def"
  uint16_t site = 0;  // 1 + index into Process::sites: the line that made the call; 0 if unknown
  bool captured = false;  // into a CUDA graph: the call has not happened and has no position
  bool replayed = false;  // a launch of a CUDA graph made the call
  // Of both times: what the estimate of the host's clock has changed by since the first one. Times
  // without it keep the order of what one process did.
  int32_t shift_ns = 0;
};

// A thread inside a blocking call.
struct BlockedCall {
  uint32_t thread = 0;
  Op op = Op::kNone;
  uint64_t communicator = 0;  // 0 if none (a wait for the GPU, a group)
  int64_t since_ns = 0;
  int32_t rank = -1;  // in the communicator, of which the process may hold several; -1 if unknown
  // Of a store: the first of the keys that it waits for; empty if there is none, or unknown.
  std::string key = {};
  uint32_t keys = 0;
  bool key_waits_forever = false;  // the wait has no time-out
};

// A thread that has made calls.
struct CallingThread {
  uint32_t thread = 0;  // CallRecord::thread
  uint32_t tid = 0;     // as in the agent's stacks; 0 if unknown
  std::string name;     // "pt_autograd_0"; empty if unknown
};

// A process that a process has started, and that works.
struct ChildAtWork {
  int32_t pid = 0;   // 0 means several that have ended meanwhile
  std::string name;  // as in /proc
  double cpus = 0;   // that it has used all the time; 0 if it reads or writes
  // It used some CPU, though less than work takes on a host with a free CPU.
  bool is_slow = false;
};

// What two samples of a process's stacks show, taken a second or more apart.
enum class Motion : uint8_t {
  kUnknown,
  kFrozen,    // the same frames, using no CPU time
  kSpinning,  // the same frames, using CPU time
  kMoving,    // other frames
};

enum class Liveness : uint8_t {
  kUnknown,  // the agent has not reported it, or the data comes from files
  kAlive,
  kExited,  // exited normally: it left an exit mark, or its exit code is 0
  kDied,    // left no exit mark, and a signal ended it or its exit code is not 0
  kEnded,   // left no exit mark, and its exit status is unknown
  kSilent,  // its agent no longer reports
};

// The reports of an agent by now.
struct AgentHeard {
  int64_t heard_ns = 0;  // when its newest tick arrived
  int64_t first_ns = 0;  // when its first tick arrived
  int64_t tick_ns = 0;   // from one of its ticks to the next
  // The waits of its processes count from this time on. Before it the agent was stopped, or
  // the network to it was down.
  int64_t counts_from_ns = 0;
  bool stale = false;      // more than three ticks are missing: the data on its host is old
  bool silent = false;     // ticks have been missing for so long that none is expected
  bool is_settled = true;  // has sent enough ticks for a verdict to rest on them
};

struct AgentState : AgentHeard {
  std::string id;  // identifies this run of the agent
  std::string host;
};

// The rules read a few fields of every process of a job, each time from memory that no cache holds.
// So these stand together in a Process: the last ones of ProcessIdentity, those of ProcessInJob,
// and the first ones of ProcessEvidence (job_state_test.cc).

// Facts about a process that do not change, from its environment and segment.
struct ProcessIdentity {
  std::string host;
  // What has switched its stacks off: "ROLLCALL_STACKS=off", or empty.
  std::string stacks_off;
  int64_t uid = -1;  // its owner, as the kernel reports it to the agent; -1 if unknown
#define PROCESS_TEXT(name) std::string name;
#define PROCESS_PLACE(name) std::string name;
#define PROCESS_DETAIL(name) std::string name;
#include "proto/facts.def"
  int32_t inner_pid = 0;  // in its own pid namespace; 0 means the same, or unknown
  int32_t local_rank = -1;
  int32_t world_size = -1;
  int32_t global_rank = -1;  // -1 if the environment gives none
  bool has_segment = false;  // false: the library is loaded but NCCL was never called
};

// What JobModel keeps of a process.
struct ProcessInJob {
  bool has_met = false;  // has been in a communicator, which the job may have dropped since
  // It is in a communicator in which a process holds several ranks (one for each device, say). Its
  // number in the job then belongs to no rank.
  bool holds_several = false;
  int32_t agent = -1;  // reports on it; index into JobState::agents; -1 if none does; its data is
                       // fresh
  // Every sample since this time shows that the main thread waits for other ranks in a library
  // other than NCCL; 0 if it does not wait there.
  int64_t waits_outside_since_ns = 0;
};

// A Python exception that ended a thread: its name in Python, and "ValueError: ... at train.py:57".
struct ThreadFailure {
  std::string thread, error;  // `error` empty if there is none
  int64_t failed_ns = 0;
};

// What the agent sees of a process from outside, and the blocking calls that the process
// is inside.
struct ProcessEvidence {
  Liveness liveness = Liveness::kUnknown;
  char state = '?';         // of /proc, as of the last tick: R, S, D, T, t, Z
  bool cpu_moving = false;  // used CPU time between the last two ticks
  bool traced = false;
  std::vector<BlockedCall> blocked;
  // An uncaught Python exception: "ValueError: ... at train.py:57", or empty.
  std::string error;
  // Step of the training loop, if the program reports it (rollcall.h); -1 if it does not.
  int64_t step = -1;
  std::string wait_channel;  // of /proc, as of the last tick
#define PROCESS_NUMBER(type, name) type name = 0;
#define PROCESS_COUNT(name) uint64_t name = 0;
#include "proto/facts.def"
  // When the agent saw the end, and when it last saw the process alive before. It ended between the
  // two. `ended_after_ns` is 0 if the agent never did, or does not report it.
  int64_t ended_ns = 0, ended_after_ns = 0;
  int32_t exit_code = -1;   // -1 if unknown
  int32_t exit_signal = 0;  // 0 if there is none, or unknown
  int64_t error_ns = 0;
  ThreadFailure thread_failure;        // the newest
  std::string phase;                   // "validation"; empty if the program does not report it
  double cpu_seconds = 0;              // used so far
  uint64_t memory_bytes = 0;           // resident
  std::vector<CallingThread> callers;  // empty if only the main thread makes calls, or unknown
};

// A time in which a process could not run.
struct Suspension {
  int64_t from_ns = 0, to_ns = 0;
};

// One process of the job.
struct Process : ProcessIdentity, ProcessInJob, ProcessEvidence {
  int32_t pid = 0;
  // Since when it has used no more than a trace of CPU time; 0 if unknown.
  int64_t quiet_since_ns = 0;
  // The CPU time that it had used at a time: JobModel counts from there.
  double counted_cpu_seconds = 0;
  int64_t counted_ns = 0;
  uint64_t start_time = 0;      // clock ticks since boot, as in /proc/PID/stat; detects pid reuse
  int64_t silent_since_ns = 0;  // kSilent: when the last report of its agent arrived

  std::vector<std::string> sites;  // lines that make calls: "/x/train.py:57 in train_epoch"

  // Taken from the newest sample of its stacks.
  Motion motion = Motion::kUnknown;
  std::string stack_words;  // the functions of all threads, separated by blanks
  StackPlace place;
  // Of its threads for whose calls others of its threads wait: those of PyTorch's backward pass.
  std::vector<uint32_t> awaited_tids;
  std::vector<ThreadPlace> thread_places;  // of its threads that show a line of the program
  std::vector<ThreadPlace> keepers;        // for which it waits before it ends
  // What it waits for outside of the job and moves: processes that it has started, and bytes a
  // second that it receives; and when one of them last moved, now or before. 0 if never.
  std::vector<ChildAtWork> children_at_work;  // without slow ones
  bool has_slow_children = false;
  double receives = 0;
  int64_t outside_moved_ns = 0;
  int64_t stacks_ns = 0;  // the agent took the sample at this time or later; 0 if never
  // Judged by the samples of the watch on jobs that stand still; nullptr if there is no sample yet.
  std::shared_ptr<const Standing> standing;
  // What its transfers over the network wait for, and when it was read at the earliest;
  // nullptr and 0 if never.
  std::shared_ptr<const std::vector<NetworkSample>> network;
  int64_t network_ns = 0;
  // Since when it is suspended; 0 if it is not.
  int64_t suspended_ns = 0;
  std::vector<Suspension> suspensions;  // the last longer ones, oldest first
};

inline bool HasEnded(const Process& process) {
  return process.liveness == Liveness::kExited || process.liveness == Liveness::kDied ||
         process.liveness == Liveness::kEnded;
}

// As in progress.h. A frozen process sleeps in one of these functions of the kernel: which of them
// has a name of its own depends on the kernel's compiler. A string_view compares lengths first.
inline bool IsSuspended(const ProcessEvidence& process) {
  const absl::string_view channel = process.wait_channel;
  return process.state == 'T' || channel == "do_freezer_trap" || channel == "get_signal" ||
         channel == "__refrigerator";
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

// The running signature over the first `position` collectives.
struct Checkpoint {
  uint64_t position = 0;
  uint64_t signature = 0;
};

// The number of sends to and receives from one peer. The nth send matches the peer's
// nth receive.
struct PeerTraffic {
  int32_t peer = -1;  // rank in the communicator
  uint32_t sends = 0, receives = 0;
};

// The messages of MPI with one peer and one tag: the nth send matches the peer's nth receive. The
// peer or the tag may be those of interpose/segment_messages.h.
struct PeerMessages {
  int32_t peer = -1, tag = -1;
  uint32_t sends = 0, receives = 0;  // modulo 2^32
  // As many of them must be done for the rank to go on; 0 if it waits for none.
  uint32_t sends_awaited = 0, receives_awaited = 0;
};

struct MessageCounts {
  std::vector<PeerMessages> by_peer;  // by peer, then tag
  bool lost = false;                  // messages with other peers are not counted
  bool cancelled = false;             // the counts of receives may be wrong
  // When a report first showed the newest message, by the reader's clock; 0 if unknown.
  int64_t moved_ns = 0;
};

// One launch of a CUDA graph that contains calls on a communicator.
struct GraphLaunch {
  uint32_t graph = 0;         // nth graph of the process that contains calls, from 1
  uint64_t launch = 0;        // nth launch of this graph, from 1
  uint64_t first_record = 0;  // CallRecord::index of its first call
  uint64_t records = 0;       // number of its calls
};

// The progress of one rank on one communicator, as its agent reports it. A job may have
// millions of these: see docs/decisions/diagnosis.md before adding a field.
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
  bool has_markers = false;        // the GPU writes `started` and `finished`
  bool has_graph_markers = false;  // the GPU reports which call of a graph it has reached
};

// One rank of one communicator.
struct Member : CommFacts {
  Member() : concurrent_use(false), may_wait(false), is_over(false) {}

  // The position of the collective that it waits in by its markers, if it waits.
  uint64_t Awaits() const { return awaited == 0 ? finished : awaited - 1; }

  bool concurrent_use : 1;  // calls of two threads overlapped
  bool may_wait : 1;        // it waits, or its progress alone does not show whether it waits
  bool is_over : 1;         // it has left the communicator, so it cannot hang there
  int32_t process = -1;     // index into JobState::processes

  LazyVector<Checkpoint> checkpoints;      // the newest, by position
  LazyVector<CallRecord> records;          // the newest, by index; may start late or have gaps
  LazyVector<PeerTraffic> traffic;         // of all records received so far, by peer
  LazyVector<GraphLaunch> graph_launches;  // the newest, in order
  std::shared_ptr<const MessageCounts> messages;  // nullptr if it has none, or they have records
};

// How long calls of one kind usually take, from the time at which the first rank enters
// to the end.
struct UsualDuration {
  Op op = Op::kNone;
  uint8_t size_class = 0;  // of the count: its number of binary digits
  uint32_t seen = 0;       // number of such calls
  int64_t longest_ns = 0;  // decays slowly, so that one bad step loses its effect
};

// The rank that enters most of the newest calls of a communicator last.
struct Arrivals {
  uint32_t calls = 0;       // number of calls in the sample; all ranks have entered them
  int32_t last_rank = -1;   // the rank (in the communicator) that was last most often
  uint32_t last_calls = 0;  // number of calls in which it was last
  int64_t late_ns = 0;      // median time from the last but one rank to this rank
  int64_t interval_ns = 0;  // mean time from call to call
};

// The first collective of one kind on a communicator. Equal arguments make one kind.
struct FirstCall {
  uint32_t kind = 0;  // the upper half of SignatureOf()
  uint32_t position = 0;
};

// A rank that reported another size of its communicator than the first reporter did.
struct ClaimedSize {
  int32_t rank = -1;
  int32_t size = 0;
};

// A process that joined with a rank that another process has.
struct Rival {
  int32_t rank = -1;
  int32_t process = -1;
  bool is_refused = false;  // its creating call failed
  uint8_t nccl_result = 0;  // with this code; 0 if unknown
};

struct Communicator {
  // Rises with every change that a rule could see, of members and of their processes.
  // 0: the owner of the state maintains neither this nor `may_diverge`, `may_wait`, `uses_p2p`,
  // `keeps_records`, `has_siblings`, `first_calls` and `recorded_until`.
  uint64_t version = 0;
  int32_t may_wait = 0;  // number of members with `may_wait`
  // False if the signatures of all members that could be compared are equal.
  bool may_diverge = false;
  bool uses_p2p = false;       // a rank has issued a send or receive
  bool keeps_records = false;  // for every member: the job is small enough
  bool has_siblings = false;   // a process holds several of its ranks
  Arrivals arrivals;
  // Every diagnosis reads what is above of every communicator, so it stands together.

  uint64_t id = 0;
  LazyVector<ClaimedSize> claims;  // the ranks with another size than `size`; at most kClaimedSizes
  LazyVector<Rival> rivals;        // of members, while the communicator is created; at most kRivals
  RankTable<Member> members;       // only the ranks with a report
  uint64_t parent = 0;             // 0 if there is none
  std::string name;                // "" if the program gave none
  CommKind kind = CommKind::kNccl;
  bool counts_messages = false;  // its ranks' messages are counted, and have no records
  int32_t size = 0;              // as the first member reported it
  int32_t other_size = 0;        // a different size that another member reported; 0 if all agree
  LazyVector<int32_t> seats;     // processes by rank, if the source lists them (dumps do)
  std::vector<UsualDuration> usual;
  int64_t finish_seen_ns = 0;  // when a report last showed that a rank had finished a collective
  // The kinds among the first `recorded_until` collectives, by whichever rank reported each
  // position first. Records pass, so only this shows whether a call is the first of its kind.
  LazyVector<FirstCall> first_calls;
  uint64_t recorded_until = 0;
};

struct JobState {
  JobKey key;
  bool offline = false;  // read from files: they do not show whether processes live
  std::vector<AgentState> agents;
  int64_t counts_from_ns = 0;  // waits count from this time on: before it the daemon was stopped
  std::vector<Process> processes;
  absl::btree_map<uint64_t, Communicator> communicators;  // by id
  // How often the processes have created their world communicator again after they had aborted it.
  int32_t world_restarts = 0;
  // What hosts showed when the newest incident was suspected, by host.
  absl::btree_map<std::string, HostFacts> host_facts;
};

struct Limits {
  int64_t hang_after_ns = 60'000'000'000;  // a wait of this length is a hang
  // A wait is suspected when it is this many times as long as usual for its
  // communicator, operation and size, but never before the floor and always from the
  // ceiling on. Without a usual length the ceiling applies.
  int64_t suspect_times_usual = 10;
  int64_t suspect_floor_ns = 5'000'000'000;
  int64_t suspect_after_ns = 15'000'000'000;  // the ceiling; below hang_after_ns
  // A wait for a rank that has left (exited, died) cannot end. This limit only prevents
  // an alarm at the normal end of a job, whose ranks leave one by one.
  int64_t absent_for_good_ns = 5'000'000'000;
  // Time between the two samples of stacks that show which ranks make progress.
  int64_t stacks_apart_ns = 5'000'000'000;
  bool watches_calls_only = false;  // judges no job that stands still outside of recorded calls
  // A person has looked at the job for some seconds and asks what is wrong now (`rollcall
  // diagnose`): most of its ranks are not recorded, and one that is stopped is worth a word.
  bool is_look = false;
};

// Each open wait counts as a hang at once: what was recorded does not show how long the last waits
// went on.
inline Limits LimitsWithoutPatience() {
  Limits limits;
  limits.hang_after_ns = 0;
  limits.suspect_after_ns = 0;
  limits.absent_for_good_ns = 0;
  return limits;
}

}  // namespace rollcall
