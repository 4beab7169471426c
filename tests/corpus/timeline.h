// SPDX-License-Identifier: Apache-2.0
// Runs a JobPlan with NCCL's semantics, without processes or a clock: computes when each
// rank entered, started and finished each call, and the calls that never end.
//
// A call returns when its work is on the stream. A stream executes its work in order. A
// collective ends when the GPUs of all its ranks have started it. Sends and receives match
// first in, first out for each pair. A group is one piece of work. Calls that do not match
// never end, unless NCCL would not detect the difference.
//
// A call of gloo runs on the host, and the host waits for it: a collective until all ranks have
// entered it, messages until their other ends are there.
#pragma once

#include <cstdint>
#include <vector>

#include "job_plan.h"

namespace rollcall::corpus {

// One call of one rank. A time is kNever if that event did not occur.
struct CallTimes {
  CallArgs args;
  uint64_t position = 0;  // p2p: number of collectives before it
  int64_t entered = kNever, returned = kNever, started = kNever, finished = kNever;
  uint32_t thread = 1;
  uint16_t group = 0;
};

// One rank on one communicator.
struct Track {
  int comm = -1;
  std::vector<CallTimes> calls;
  int64_t init_entered = kNever, init_returned = kNever;
  int64_t destroy_entered = kNever, destroy_returned = kNever;
  int32_t error = 0;
  int64_t error_at = kNever;
};

struct Span {
  int64_t begin = kNever, end = kNever;
};

struct RankTimeline {
  std::vector<Track> tracks;  // in the order in which the communicators are created
  std::vector<Span> syncs;    // the host waits for a stream
  int64_t ended = kNever;
  bool died = false;

  const Track* OnComm(int comm) const;
};

struct Timeline {
  std::vector<RankTimeline> ranks;
  int64_t last_event = 0;
  bool all_ended = false;
};

Timeline Run(const JobPlan& plan);

}  // namespace rollcall::corpus
