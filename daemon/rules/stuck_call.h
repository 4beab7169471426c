// SPDX-License-Identifier: Apache-2.0
// Finds the calls that ranks wait in: the input of the rules. Searches each communicator
// separately and uses no clock. Later steps decide how long a wait may last and which
// absent ranks are excused because they wait elsewhere (wait_graph.h, rules.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/model/job_state.h"
#include "daemon/model/progress.h"
#include "daemon/model/verdict.h"
#include "daemon/rules/members/rank_map.h"

namespace rollcall {

// The reason why other ranks wait for a rank.
enum class Lack : uint8_t {
  kNotEntered,  // it has not entered the call
  kNotStarted,  // it has entered the call, but its GPU has not started it
  kNotMatched,  // p2p: it has issued the other end behind an operation that it still waits in
  kGone,        // it has entered the call, but its process ended before the call
  kUnheard,     // no report on it has arrived
};

struct Absent {
  int32_t rank = -1;  // in the communicator
  // More than 1: stands for this many neighbours from `rank` on, of which no agent reports any and
  // no process is known.
  int32_t ranks = 1;
  int32_t process = -1;  // -1 if unknown
  Lack lack = Lack::kNotEntered;
  Gone gone = Gone::kNo;
  bool failed = false;  // an exception has ended it
  // It passed another size than the others, or a rank that another process has: whatever became of
  // it since, this is what is wrong.
  bool disagrees = false;
  bool is_sibling = false;  // its process holds several ranks, each with a device of its own
  bool is_refused = false;  // NCCL has refused its call for that: it will not come
  bool silent = false;      // its agent no longer reports
  bool stale = false;       // ticks of its agent are missing: it may have entered the call since
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
  enum class Kind : uint8_t { kCollective, kCreation, kP2p, kTeardown, kStoreKey };
  Kind kind = Kind::kCollective;
  const Communicator* communicator = nullptr;
  uint64_t position = 0;  // p2p: collectives entered before it
  CallArgs call;          // also a creating call or a teardown; op kNone: its record is lost
  std::vector<Waiter> waiters;
  // Empty if all ranks are inside the call, but it does not end.
  std::vector<Absent> absents;
  std::vector<Errored> errored;
  std::vector<int32_t> concurrent;  // ranks of which two threads were inside calls at once
  // P2p: both ends exist, but their sizes differ. Then the call and rank of the other end.
  bool size_differs = false;
  // P2p: any message of the absent ranks would end the wait, so it needs not all of them.
  bool is_choice = false;
  // Counted messages: an absent rank has sent others, with tags for which nobody waits.
  bool tags_differ = false;
  // Counted messages: only threads beside the main ones wait in it.
  bool is_beside = false;
  // records of an end are lost: these may be two ends that never meet
  bool is_pair_guessed = false;
  CallArgs other_end;
  int32_t other_rank = -1;
  std::vector<std::string> evidence;
  std::vector<std::string> missing_evidence;

  // When the first rank began to wait; if all ranks have entered the call, when the last did.
  int64_t since_ns = 0;
};

// Whether the sends and receives of the communicator may have records: MPI's are only counted, and
// of gloo's those with a tag or from any rank.
inline bool MayHaveP2pRecords(const Communicator& comm) {
  return !comm.counts_messages || comm.kind == CommKind::kGloo;
}

using StuckCalls = std::vector<const StuckCall*>;

// True for a collective that most ranks wait in and the others, which all are heard of, have not
// entered.
bool IsLeftByFew(const StuckCall& call);

// All stuck calls of one communicator. `finder`: for all communicators of this state of the job.
std::vector<StuckCall> FindStuckCalls(const JobState& job, const Communicator& comm,
                                      RankFinder* finder);

// The result of one pass over the members. Most communicators need no second pass.
struct MemberSummary {
  bool has_formed = false;
  bool uses_p2p = false;
  bool may_tear_down = false;
  bool may_have_errors = false;
  bool may_be_used_concurrently = false;
  // The least number of calls that a rank has entered, over the ranks with fresh reports whose
  // creation has not failed. If all of these wait in a call that ranks with old reports had not
  // entered by then: the position of that call.
  uint64_t least_entered = UINT64_MAX;
  std::vector<Waiter> waiters;  // in collectives
};

// The parts of FindStuckCalls(), one for each kind of call.
void FindStuckCollectives(const JobState& job, const Communicator& comm,
                          const MemberSummary& summary, RankFinder* finder,
                          std::vector<StuckCall>* calls);
void FindStuckCreation(const JobState& job, const Communicator& comm, RankFinder* finder,
                       std::vector<StuckCall>* calls);
void FindStuckP2p(const JobState& job, const Communicator& comm, RankFinder* finder,
                  std::vector<StuckCall>* calls);
void FindStuckMessages(const JobState& job, const Communicator& comm, RankFinder* finder,
                       std::vector<StuckCall>* calls);
void FindStuckTeardown(const JobState& job, const Communicator& comm,
                       std::vector<StuckCall>* calls);

// An absent rank with the known facts of its process.
Absent MakeAbsent(const JobState& job, int32_t rank, const Member& member, Lack lack);

// By process: when it has begun its newest call or message on any communicator; 0 if unknown.
std::vector<int64_t> NewestCallTimes(const JobState& job);

// An absent rank, or neighbours, without any report on the communicator. The data is missing, but
// the rank may have made the call: the verdict on it is at most `possible`.
Absent MakeUnheard(const JobState& job, const UnknownMember& unknown);

// MPI_Recv or MPI_Send, if the rank waits for a message with the peer; else kNone.
// The absent rank that alone has not sent a waiting one as many messages with the awaited tag as
// each other sender has, or whose messages to it have tags that no other rank uses. nullptr if
// there is none.
const Absent* FindOddSender(const StuckCall& call);

// OpTowards() by the counts of messages.
Op AwaitedTowards(const Communicator& comm, int32_t rank, int32_t peer);

// The arguments of the call at `position`, from the first rank that still has its record.
CallArgs CallAt(const Communicator& comm, uint64_t position);

// The member with this rank; nullptr if there is no report on it.
const Member* FindMember(const Communicator& comm, int32_t rank);

}  // namespace rollcall
