// SPDX-License-Identifier: Apache-2.0
// Ranks that are about to create a communicator and wait in torch's store for its id.
//
// The id is made by the lowest rank of the communicator, which puts it into the store. The others
// wait there and make no NCCL call meanwhile, so only their stacks show it. Ranks that wait at one
// line of the program are taken to wait for one id.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>

#include "daemon/model/job_state.h"
#include "daemon/rules/stuck_call.h"

namespace rollcall {

// The calls in which such ranks wait, each with the ranks that may owe the id. They point to the
// communicators here: those do not exist yet, have no id, and number their ranks as the job does.
struct StoreWaits {
  std::list<Communicator> communicators;
  std::list<StuckCall> calls;
  size_t looked_at = 0;  // calls, ranks and entries of calls: a job has many of each
};

// Whether the call is one of these.
inline bool IsStoreWait(const StuckCall& call) {
  return call.kind == StuckCall::Kind::kCreation && call.communicator->id == 0;
}

// `calls`: the stuck calls of the job. Nothing in a job that has not started (HasStarted()). No
// rank owes an id while a rank that may owe it makes calls.
StoreWaits FindStoreWaits(const JobState& job, const StuckCalls& calls, int64_t now_ns,
                          const Limits& limits);

}  // namespace rollcall
