// SPDX-License-Identifier: Apache-2.0
// What the rules say: findings, and the verdicts made of them. Plain values,
// mirrored by proto/rollcall/v1/incident.proto.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/model/job_state.h"

namespace rollcall {

// The causes, with their spelling in incident.json. Order: what explains more
// comes first when nothing else decides.
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

// A contradiction is true at once; a wait becomes a hang with time.
constexpr bool IsContradiction(Cause cause) {
  return cause == Cause::kOperationMismatch || cause == Cause::kArgumentMismatch;
}

// Nothing hangs: worth a line on the screen, never an incident.
constexpr bool IsWarning(Cause cause) { return cause == Cause::kStraggler; }

struct Culprit {
  int32_t process = -1;  // index into JobState::processes; -1: no process of it is known
  int32_t rank = -1;     // global where known, else in the communicator
  std::string host;
  int32_t pid = 0;  // 0: not known
  int32_t device = -1;
  CallArgs call;         // mismatches: what it called instead
  uint64_t entered = 0;  // collectives it has entered on that communicator
  std::string error;     // the exception that ended it: "ValueError: ... at train.py:57"; "": none
  std::string ending;    // how it ended or left: "exited normally", "killed by signal 9"; "": it did not
  char state = '?';      // of its process, as /proc has it
  std::string wait_channel;
  int32_t exit_code = -1;   // -1: not known, or it lives
  int32_t exit_signal = 0;  // 0: none
  std::string site;         // the line that made `call`, or its last call; "": not known
  int64_t step = -1;        // of its training loop; -1: not known
  std::string phase;
};

// How the culprits' history departs from the others'.
enum class DivergenceKind : uint8_t {
  kNone,
  kReplaced,  // another call in the place of one
  kExtra,     // calls that the others did not make
  kSkipped,   // calls left out that the others made
  kSwapped,   // the same calls in another order
};

// One line of two histories side by side. op kNone: that side has no such call.
struct AlignedCall {
  uint64_t position = 0;          // on the side of the others
  uint64_t culprit_position = 0;  // on the culprits' side
  CallArgs others;
  CallArgs culprits;
  std::string others_site = {}, culprits_site = {};  // the lines that made them; "": not known
};

// One step of a wait-for chain or cycle, in the order in which it is walked:
// `from` waits in this call for `to`. Ranks are global where known.
struct WaitEdge {
  std::vector<int32_t> from;
  std::vector<int32_t> to;
  uint64_t communicator = 0;
  std::string communicator_name;
  int32_t communicator_size = 0;
  uint64_t position = 0;  // collectives: of the call. P2p: the collectives entered before it
  CallArgs call;
};

// Which call of which launch of a CUDA graph.
struct GraphPlace {
  uint32_t graph = 0;   // nth graph of the process that holds calls, from 1; 0: none
  uint64_t launch = 0;  // of this graph, from 1
  uint64_t call = 0;    // of its calls on that communicator, from 1
  uint64_t calls = 0;
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
  std::vector<int32_t> waiting_processes;  // indices; whose stacks are worth taking

  uint64_t communicator = 0;
  std::string communicator_name;
  int32_t communicator_size = 0;

  uint64_t position = 0;
  // Mismatches: what the majority called there. Creation of a communicator: the
  // creating call. kNone: no record of it is left.
  CallArgs call;
  std::string site;   // the line of a waiting rank that made the call; "": not known
  int64_t step = -1;  // that most of the waiting are in; -1: not known
  std::string phase;  // of those
  GraphPlace graph;   // where a waiting rank's launch of a graph made the call
  bool captured = false;  // culprits have captured the call into a graph instead of making it
  // The divergence lies at `position` or after it, but before this; 0: at it.
  uint64_t position_end = 0;

  std::vector<std::string> mismatched_fields;
  DivergenceKind divergence = DivergenceKind::kNone;
  std::vector<AlignedCall> histories;  // around the divergence, where records are left
  std::vector<WaitEdge> chain;         // deadlocks: the cycle. Consequences: the way to the root
  // The culprits make progress outside NCCL (CPU time, changing stacks): late,
  // not lost, as far as anybody can tell.
  bool late = false;
  int64_t late_ns = 0;      // stragglers: by how much they come last, usually
  std::string stack_words;  // the functions on the culprits' stacks, blanks between
  int64_t since_ns = 0;     // when the first one began to wait; contradictions: when it arose
  int64_t waited_ns = 0;
  // The wait counts from then where that is later than `since_ns`: before it the daemon, or the
  // agents of those who wait or are waited for, were held themselves.
  int64_t counts_from_ns = 0;
  // Age of the oldest word it rests on. What does not age does not count: records that contradict
  // each other, ends of processes. Nor do hosts that are silent, which `missing_evidence` names.
  int64_t evidence_age_ns = 0;
  bool stale = false;      // some of it is older than three ticks, and may be heard again
  bool hearsay = false;    // it rests on an agent that has only begun to speak
  // No wait has to be long for it: the culprits have failed, and cannot come.
  bool at_once = false;
  bool is_consequence = false;  // another verdict explains this one
  std::string summary;          // one sentence
  std::vector<std::string> evidence;
  std::vector<std::string> missing_evidence;
  std::vector<Advice> advice;
};

}  // namespace rollcall
