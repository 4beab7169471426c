// SPDX-License-Identifier: Apache-2.0
#include "agent/collector/record_shares.h"

#include <algorithm>

namespace rollcall {

RecordShares::RecordShares(size_t most_records, const std::map<int64_t, size_t>& processes) {
  for (const auto& [payer, count] : processes) {
    left_[payer] = {most_records / processes.size(), count};
  }
}

size_t RecordShares::TakeFor(int64_t payer, const SegmentSnapshot& snapshot) {
  constexpr size_t kLeast = 4;  // a verdict needs the newest ones
  Left& left = left_[payer];
  const size_t part = left.records / std::max<size_t>(left.processes, 1);
  const size_t each = std::max(part / std::max<size_t>(snapshot.communicators.size(), 1), kLeast);
  size_t used = 0;
  for (const CommSnapshot& comm : snapshot.communicators) {
    used += std::min(comm.records.size(), each);
  }
  left.records -= std::min(left.records, used);
  if (left.processes > 0) --left.processes;
  return each;
}

}  // namespace rollcall
