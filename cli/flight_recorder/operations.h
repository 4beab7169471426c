// SPDX-License-Identifier: Apache-2.0
// Maps the operations in Flight Recorder dumps to Rollcall's, with the count on
// which all ranks must agree.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "cli/flight_recorder/dump.h"
#include "daemon/model/job_state.h"

namespace rollcall {

// "nccl:_all_gather_base" -> "all_gather_base", "nccl:send 1->2" -> "send".
std::string OperationName(const std::string& profiling_name);

bool IsAllToAll(const std::string& profiling_name);

bool IsCoalescedEnd(const std::string& profiling_name);

// Gives each unknown operation a code of its own, the same for all ranks.
class OperationTable {
 public:
  // `names`: all operations in the dumps, as OperationName() gives them.
  explicit OperationTable(const std::set<std::string>& names);

  Op FindOp(const std::string& operation) const;
  // Returns one line for each unknown operation, with its code.
  std::vector<std::string> Warnings() const;

  // The arguments on which all ranks must agree: operation, type, count. Dumps do not record root
  // and reduction. The count is 0 where the ranks' counts may differ.
  CallArgs MakeArgs(const std::vector<const DumpedCall*>& one_call) const;

 private:
  std::vector<std::string> unknown_;
};

// The other rank in "nccl:send 1->2" or "nccl:recv 2<-1", by its number in the group. -1 if the
// name does not contain it.
int32_t ParsePeer(const std::string& profiling_name);

}  // namespace rollcall
