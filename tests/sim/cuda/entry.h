// SPDX-License-Identifier: Apache-2.0
// What every driver function does first.
//
// ROLLCALL_SIM_FAIL lists driver functions, by their exported names and with
// commas, that are to fail. A test so sees what its subject does on a machine
// where one of them is not to be had.
#pragma once

#include <cuda.h>

#include "tests/sim/cuda/device.h"

namespace rollcall::sim {

bool ToldToFail(const char* function);

}  // namespace rollcall::sim

#define SIM_ENTER()                                                             \
  do {                                                                          \
    static const bool told_to_fail = rollcall::sim::ToldToFail(__func__);       \
    if (told_to_fail) return CUDA_ERROR_NOT_SUPPORTED;                          \
    if (rollcall::sim::ForkedAway()) return CUDA_ERROR_NOT_INITIALIZED;         \
  } while (false)

// The stream that a handle means for the calling thread, or return the error.
#define SIM_STREAM(handle, stream)                                              \
  rollcall::sim::StreamRef stream;                                              \
  do {                                                                          \
    const CUresult found =                                                      \
        rollcall::sim::FindStream(rollcall::sim::CurrentDevice(), handle, &stream); \
    if (found != CUDA_SUCCESS) return found;                                    \
  } while (false)
