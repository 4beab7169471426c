// SPDX-License-Identifier: Apache-2.0
// What the agent logs about faults: files that it cannot read, and parts that it leaves out. A
// fault recurs with every tick, so the agent logs each once.
//
// A process may change with each tick what is wrong with its segment, and all users share the log:
// so the agent logs some faults of each process, and stops for a user with many once less than a
// third of that is left.
//
// Pure. Not thread-safe: one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/processes/process_id.h"

namespace rollcall {

class FaultLog {
 public:
  static constexpr size_t kMost = 1000;  // for as long as the agent runs
  static constexpr size_t kMostOfProcess = 8;

  static constexpr int64_t kNobody = -1;

  // `user`: whose fault it is, as PayerOfReads(); kNobody: not known, or no user's.
  void Add(const std::string& text, int64_t user = kNobody);
  // Reports what is wrong with the segment of this process.
  void AddOf(ProcessId process, const std::string& text, int64_t user);
  void Forget(ProcessId process) { of_process_.erase(process); }

  // What is new since the last call.
  std::vector<std::string> Take() { return std::exchange(news_, {}); }

 private:
  bool HasRoom(int64_t user) const;

  std::vector<std::string> news_;
  std::set<std::string> said_;
  std::map<int64_t, size_t> of_user_;
  std::map<ProcessId, std::set<std::string>> of_process_;
};

}  // namespace rollcall
