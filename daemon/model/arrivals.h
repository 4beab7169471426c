// SPDX-License-Identifier: Apache-2.0
// Finds the rank that enters the calls of one communicator last: compares the
// times at which the ranks entered the same call, for the newest calls.
//
// One owner, no lock. Bounded: newer calls replace calls that some rank has not
// entered.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "daemon/model/job_state.h"

namespace rollcall {

class ArrivalWatch {
 public:
  // Records that `rank`, one of `size` ranks, has entered the call at `position`.
  void Add(int32_t rank, int32_t size, uint64_t position, int64_t entered_ns);

  // The result over the newest kScored calls.
  Arrivals Score() const;
  // Whether the result may have changed since the last call: all ranks have entered another call.
  bool TakeChanged() { return std::exchange(has_changed_, false); }

 private:
  static constexpr uint64_t kEvery = 5;  // takes every fifth position
  static constexpr size_t kOpen = 64;
  static constexpr size_t kScored = 64;

  struct Call {
    uint64_t position = 0;
    int32_t arrived = 0;
    int32_t last_rank = -1;
    int64_t last_ns = 0, before_last_ns = 0;
  };
  std::vector<Call> open_;  // by position / kEvery % kOpen
  std::vector<Call> scored_;
  bool has_changed_ = false;
};

}  // namespace rollcall
