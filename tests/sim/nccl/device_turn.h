// SPDX-License-Identifier: Apache-2.0
// One NCCL kernel at a time on a device, if ROLLCALL_SIM_SERIALIZE=1.
//
// A GPU has room for so many kernels, and one that waits for its peers keeps
// its room. Two communicators used in another order on two ranks can so wait
// for each other for ever. Without the variable there is always room.
#pragma once

#include "tests/sim/nccl/comm.h"

namespace rollcall::sim {

class DeviceTurn {
 public:
  // Waits for its turn, or until the communicator is stopped.
  explicit DeviceTurn(const Comm& comm);
  ~DeviceTurn();
  DeviceTurn(const DeviceTurn&) = delete;
  DeviceTurn& operator=(const DeviceTurn&) = delete;

 private:
  const int device_;
  bool taken_ = false;
};

// Wakes those who wait for a turn, so that they see that they are stopped.
void WakeDeviceTurns();

}  // namespace rollcall::sim
