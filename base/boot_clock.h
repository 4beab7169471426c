// SPDX-License-Identifier: Apache-2.0
// The clock of leases. It counts while the host is suspended, as the database's clock does.
#pragma once

#include <time.h>

#include <cstdint>

namespace rollcall {

// In nanoseconds since the host has started.
inline int64_t BootNs() {
  timespec time = {};
  clock_gettime(CLOCK_BOOTTIME, &time);
  return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
}

}  // namespace rollcall
