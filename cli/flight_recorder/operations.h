// SPDX-License-Identifier: Apache-2.0
// From the operations that Flight Recorder names to ours, with the count that
// all ranks must agree on.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "cli/flight_recorder/dump.h"
#include "daemon/model/job_state.h"

namespace rollcall {

// "nccl:_all_gather_base" -> "all_gather_base", "nccl:send 1->2" -> "send".
std::string OperationOf(const std::string& profiling_name);

bool IsCoalescedEnd(const std::string& profiling_name);

// Gives operations that nobody knows codes of their own, the same for all ranks.
class OperationTable {
 public:
  // `names`: all that occur, as OperationOf() gives them.
  explicit OperationTable(const std::set<std::string>& names);

  Op OpOf(const std::string& operation) const;
  // What stands for "call with op code N" in texts.
  std::vector<std::string> Notes() const;

  // The arguments that must agree: operation, type, count. Root and reduction
  // are not recorded. Counts that may lawfully differ between ranks are 0.
  CallArgs ArgsOf(const std::vector<const DumpedCall*>& one_call) const;

 private:
  std::vector<std::string> unknown_;
};

// "nccl:send 1->2" or "nccl:recv 2<-1": the other rank, in the group; -1: not said.
int32_t PeerOf(const std::string& profiling_name);

}  // namespace rollcall
