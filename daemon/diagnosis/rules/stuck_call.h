// SPDX-License-Identifier: Apache-2.0
// Calls that ranks wait in: the input of the rules. The search covers each communicator
// separately and uses no clock. Later steps decide how long a wait may last and which
// absent ranks are excused because they wait elsewhere (wait_graph.h, rules.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "daemon/model/job_state.h"
#include "daemon/model/progress.h"
#include "daemon/model/verdict.h"

namespace rollcall {

// Why other ranks wait for a rank.
enum class Lack : uint8_t {
  kNotEntered,  // it has not entered the call
  kNotStarted,  // it has, but its GPU has not reached it
  kNotMatched,  // p2p: it has issued the other end, behind an operation that it waits in
  kGone,        // it had entered, but its process ended before the call did
  kUnheard,     // nothing has been heard of it: a gap in what is known
};

struct Absent {
  int32_t rank = -1;     // in the communicator
  int32_t process = -1;  // -1: not known
  Lack lack = Lack::kNotEntered;
  Gone gone = Gone::kNo;
  bool failed = false;  // by an exception
  bool silent = false;  // its agent no longer answers
  bool stale = false;   // its agent's ticks are missing: it may have come meanwhile
  int64_t gone_since_ns = 0;
  // The highest certainty that the others wait for this rank.
  Certainty at_most = Certainty::kCertain;
};

// A member on which NCCL has reported an error.
struct Errored {
  int32_t rank = -1;
  int32_t process = -1;
  int32_t code = 0;  // ncclResult_t
};

struct StuckCall {
  enum class Kind : uint8_t { kCollective, kCreation, kP2p, kTeardown };
  Kind kind = Kind::kCollective;
  const Communicator* communicator = nullptr;
  uint64_t position = 0;  // p2p: collectives entered before it
  CallArgs call;          // the creating call, the tearing down; kNone where no record is left
  std::vector<Waiter> waiters;
  // Empty: all ranks are in the call, but it does not end.
  std::vector<Absent> absents;
  std::vector<Errored> errored;
  std::vector<int32_t> concurrent;  // ranks whose threads were inside at once
  // P2p: both ends exist, with different sizes. The other end's call and rank.
  bool size_differs = false;
  CallArgs other_end;
  int32_t other_rank = -1;
  std::vector<std::string> evidence;
  std::vector<std::string> missing_evidence;

  // When the first one began to wait; if all have entered, when the last one did.
  int64_t since_ns = 0;
};

using StuckCalls = std::vector<const StuckCall*>;

// All of one communicator.
std::vector<StuckCall> FindStuckCalls(const JobState& job, const Communicator& comm);

// The result of one pass over the members. Most communicators need no second pass.
struct MembersAtAGlance {
  bool has_formed = false;
  bool uses_p2p = false;
  bool may_tear_down = false;
  bool may_have_errors = false;
  bool may_be_used_at_once = false;
  // Of those whose creation has not failed, and that are heard. Where all of these wait in a call
  // that others had not entered when they were last heard: the position of that call.
  uint64_t least_entered = UINT64_MAX;
  std::vector<Waiter> waiters;  // in collectives
};

// The parts of FindStuckCalls, each for one kind.
void FindStuckCollectives(const JobState& job, const Communicator& comm,
                          const MembersAtAGlance& glance, std::vector<StuckCall>* calls);
void FindStuckCreation(const JobState& job, const Communicator& comm,
                       std::vector<StuckCall>* calls);
void FindStuckP2p(const JobState& job, const Communicator& comm, std::vector<StuckCall>* calls);
void FindStuckTeardown(const JobState& job, const Communicator& comm,
                       std::vector<StuckCall>* calls);

// An absent rank with the known facts of its process.
Absent MakeAbsent(const JobState& job, int32_t rank, const Member& member, Lack lack);

// A rank without any report on the communicator. Data is missing, not necessarily a call,
// so the rank is never blamed with more than `possible`.
// `processes`: which process it may be (rank_map.h).
Absent MakeUnheard(const JobState& job, int32_t rank, const std::map<int32_t, int32_t>& processes);

// The arguments of the call at `position`, from any rank whose record is left.
CallArgs CallAt(const Communicator& comm, uint64_t position);

const Member* FindMember(const Communicator& comm, int32_t rank);

}  // namespace rollcall
