// SPDX-License-Identifier: Apache-2.0
// Do the ranks of a communicator make the same calls? Compares running
// signatures as they come in, each against the first one seen at its position,
// so that a check need not examine all members each time.
//
// One owner, no lock. Remembers the newest positions only: ranks that are
// further apart than that are compared at a later one, since signatures that
// differ once differ for ever.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/model/job_state.h"

namespace rollcall {

class Agreement {
 public:
  // A rank's signature over its first `position` calls. False: another rank's differs.
  bool Add(uint64_t position, uint64_t signature);

  // The same for every position up to a member's new one, as far as `records`
  // lead there from the old one.
  bool AddRecords(uint64_t position, uint64_t signature, const std::vector<CallRecord>& records,
                   uint64_t new_position, uint64_t new_signature);

 private:
  void Grow();

  std::vector<Checkpoint> seen_;  // by position % size
};

}  // namespace rollcall
