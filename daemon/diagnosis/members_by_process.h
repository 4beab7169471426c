// SPDX-License-Identifier: Apache-2.0
// Finds the member of a communicator that belongs to a process.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "daemon/model/job_state.h"

namespace rollcall {

// Holds pointers into `comm`, which must stay as it is. A verdict may have 100,000 culprits on a
// communicator of 100,000 ranks, so a search of the members for each culprit takes minutes.
class MembersByProcess {
 public:
  explicit MembersByProcess(const Communicator& comm) {
    members_.reserve(comm.members.size());
    for (const auto& [rank, member] : comm.members) {
      if (member.process >= 0) members_.emplace_back(member.process, &member);
    }
    // Most jobs number their ranks and their processes in the same order.
    if (!std::is_sorted(members_.begin(), members_.end(), IsBefore)) {
      std::stable_sort(members_.begin(), members_.end(), IsBefore);
    }
  }

  // Returns the member of the process with the lowest rank; nullptr if the process is not a member.
  const Member* Find(int32_t process) const {
    const Entry wanted(process, nullptr);
    const auto at = std::lower_bound(members_.begin(), members_.end(), wanted, IsBefore);
    return at == members_.end() || at->first != process ? nullptr : at->second;
  }

 private:
  using Entry = std::pair<int32_t, const Member*>;
  static bool IsBefore(const Entry& a, const Entry& b) { return a.first < b.first; }

  std::vector<Entry> members_;  // by process
};

}  // namespace rollcall
