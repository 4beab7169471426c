// SPDX-License-Identifier: Apache-2.0
// Computes the progress of one rank in one group from its calls.
#pragma once

#include <cstdint>
#include <vector>

#include "cli/flight_recorder/dump.h"
#include "cli/flight_recorder/operations.h"
#include "daemon/model/job_model.h"

namespace rollcall {

// One piece of work on the group's stream: a collective, a group of sends and receives, or a
// single send or receive.
struct Work {
  std::vector<const DumpedCall*> calls;
  bool is_p2p = false;
  bool completed = false;
  const DumpedCall& last() const { return *calls.back(); }
};

// Groups `calls` into works, in order. Calls with the same sequence number form one work if the
// end of a coalesced call follows them.
std::vector<Work> MakeWorks(const std::vector<const DumpedCall*>& calls,
                            const DumpedStatus& status);

// Whether the work is a group of calls. Its last call shows this.
bool IsCoalesced(const Work& work);

// Fills a CommProgress from the works of one stream, oldest first.
class ProgressWriter {
 public:
  // `begun`: the record of the rank's oldest unfinished work in all its groups. nullptr if the
  // dumps have start times, which show what has begun.
  ProgressWriter(const OperationTable& table, const DumpedCall* begun, CommProgress* progress);

  // Adds work of the group's own communicator.
  void Add(const Work& work);

  // Adds a send or receive outside of a group. torch creates a communicator for each such pair.
  void AddSingle(const Work& work, int32_t peer);

  // Call this after the last work. `status`: the group's entry in Dump::status.
  void Finish(const DumpedStatus& status);

 private:
  void AddCollective(const Work& work);
  // `only_peer` -1 means the name of each call contains its peer.
  void AddP2p(const Work& work, int32_t only_peer);

  // Counts a completed work. False once a work is unfinished: a stream works in order, so all later
  // works are unfinished, too.
  bool Advance(const Work& work);

  // Whether an unfinished work has begun. Without start times only the rank's oldest unfinished
  // work counts as begun: streams wait for each other in the order of the calls.
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
