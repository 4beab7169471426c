// SPDX-License-Identifier: Apache-2.0
// The plan of a generated job: communicators, and a program for each rank. Plain
// values; faults change them before timeline.h runs them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "daemon/model/job_state.h"

namespace rollcall::corpus {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kNever = INT64_MAX;

using Random = std::mt19937_64;
inline uint64_t Below(Random& random, uint64_t n) { return n == 0 ? 0 : random() % n; }
inline bool Chance(Random& random, int percent) {
  return static_cast<int>(Below(random, 100)) < percent;
}

struct Step {
  enum class Kind : uint8_t {
    kCompute,  // the host computes for `ns`; kNever: for ever
    kGpuWork,  // the stream computes for `ns`
    kCall,     // a collective
    kP2p,      // sends and receives in one group; a single one without a group
    kSync,     // the host waits for the stream
    kInit,
    kDestroy,
    kExit,
    kDie,
  };
  Kind kind = Kind::kCompute;
  int comm = -1;  // index into JobPlan::comms
  int stream = 0;
  CallArgs args;              // kCall
  std::vector<CallArgs> p2p;  // kP2p; peers are ranks of the communicator
  int64_t ns = 0;
  uint32_t thread = 1;
  int32_t error = 0;    // ncclResult_t that NCCL reports during this call
  bool stalls = false;  // kCall: it never ends, although all ranks enter it
};

struct CommPlan {
  std::string name;
  std::vector<int> ranks;  // global
  CommKind kind = CommKind::kNccl;
};

using Program = std::vector<Step>;

struct JobPlan {
  std::string layout;  // "dp4-tp2-pp2"
  int ranks = 0;
  int ranks_per_host = 8;
  std::vector<CommPlan> comms;
  // Ranks with the same role share a program until Own() makes a copy.
  std::vector<std::shared_ptr<const Program>> programs;
  std::vector<int> hosts_lost;  // hosts that become silent when the first of their ranks stops

  int HostIndex(int rank) const { return rank / ranks_per_host; }
  int RankIn(int comm, int rank) const;
  bool IsGloo(int comm) const {
    return comm >= 0 && comms[static_cast<size_t>(comm)].kind == CommKind::kGloo;
  }
  // Makes a copy of the rank's program, for the caller to change.
  Program* Own(int rank);
};

// A job with a random parallel layout and kind of step, and about `ranks` ranks. It
// evaluates every few steps and may write a checkpoint. In a quarter of them all ranks also have a
// gloo group, for their losses, to agree on files, and for messages between two neighbours.
JobPlan MakeJob(Random& random, int ranks, bool small_steps);

// A job with pipeline stages only: sends and receives.
JobPlan MakePipeline(Random& random, int stages);

// A data-parallel job with many equal steps.
JobPlan MakeDataParallel(Random& random, int ranks, int steps);

}  // namespace rollcall::corpus
