// SPDX-License-Identifier: Apache-2.0
// Who comes last to the calls of one communicator: pairs the times at which its
// ranks entered the same call, and keeps the score of the newest ones.
//
// One owner, no lock. Bounded: calls that not all ranks come to are dropped
// when newer ones need their place.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/model/job_state.h"

namespace rollcall {

class ArrivalWatch {
 public:
  // `rank` of `size` ranks has entered the call at `position`.
  void Add(int32_t rank, int32_t size, uint64_t position, int64_t entered_ns);

  // Over the newest kScored calls; call it when Add() was called.
  Arrivals Score() const;

 private:
  static constexpr uint64_t kEvery = 5;  // of so many calls one is looked at
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
};

}  // namespace rollcall
