// SPDX-License-Identifier: Apache-2.0
// Checks whether the ranks of a communicator make the same calls. Compares each
// running signature as it arrives with the first one at its position, so that a
// check need not examine all members each time.
//
// One owner, no lock. Keeps the newest positions only. Ranks that are further
// apart than that meet at a later position: once two signatures differ, all
// later ones differ too.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/model/job_state.h"

namespace rollcall {

class Agreement {
 public:
  // Adds a rank's signature over its first `position` calls. False if another rank's differs.
  bool Add(uint64_t position, uint64_t signature);

  // Does the same for every position from a member's old one to its new one, if
  // `records` has every call in between.
  bool AddRecords(uint64_t position, uint64_t signature, const std::vector<CallRecord>& records,
                  uint64_t new_position, uint64_t new_signature);

 private:
  void Grow();

  std::vector<Checkpoint> seen_;  // by position % size
};

}  // namespace rollcall
