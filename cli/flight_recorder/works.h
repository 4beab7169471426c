// SPDX-License-Identifier: Apache-2.0
// Computes the progress of one rank in one group from its calls.
#pragma once

#include <cstdint>
#include <vector>

#include "cli/flight_recorder/dump.h"
#include "cli/flight_recorder/operations.h"
#include "daemon/model/job_model.h"

namespace rollcall {

// A collective, or a group of sends and receives, or a single one: what is one
// piece of work on the group's stream.
struct Work {
  std::vector<const DumpedCall*> calls;
  bool is_p2p = false;
  bool completed = false;
  const DumpedCall& last() const { return *calls.back(); }
};

// In order. Calls with one sequence number belong together where a coalesced end
// follows.
std::vector<Work> WorksOf(const std::vector<const DumpedCall*>& calls, const DumpedStatus& status);

// It is a group of calls, told by its end.
bool IsCoalesced(const Work& work);

// Fills a CommProgress from the works of one stream, oldest first.
class ProgressWriter {
 public:
  // `begun`: the record of the rank's oldest work that is not done, of all its
  // groups; nullptr: start times tell.
  ProgressWriter(const OperationTable& table, const DumpedCall* begun, CommProgress* progress);

  // Of a group's own communicator.
  void Add(const Work& work);

  // Of the communicator of a pair: torch makes one for sends in no group.
  void AddSingle(const Work& work, int32_t peer);

  // After the last work. `status`: what the dump says of the group besides.
  void Finish(const DumpedStatus& status);

 private:
  void AddCollective(const Work& work);
  // `only_peer` -1: each call's name says with whom.
  void AddP2p(const Work& work, int32_t only_peer);

  // A stream works in order: after the first that is not done nothing is.
  bool Advance(const Work& work);

  // Whether an unfinished work has begun is unknown, except for the oldest one
  // of the rank: streams wait for each other in the order of the calls.
  bool Begins(const Work& work);
  int64_t WaitingSince(const Work& work) const;
  CallRecord Record(const DumpedCall& call, const CallArgs& args);
  uint64_t SignatureAfter(const CallArgs& args) const;
  uint16_t NextGroup();

  const OperationTable& table_;
  const DumpedCall* const begun_;
  CommProgress* const p_;
  uint16_t groups_ = 0;
  int64_t last_completed_ns_ = 0;
  bool open_ = false;
};

}  // namespace rollcall
