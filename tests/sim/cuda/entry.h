// SPDX-License-Identifier: Apache-2.0
// The first steps of every driver function.
//
// ROLLCALL_SIM_FAIL lists driver functions that fail, by their exported names and
// with commas. So a test can check the behaviour on a machine that lacks one of
// these functions.
#pragma once

#include <cuda.h>

#include "tests/sim/cuda/device.h"

namespace rollcall::sim {

bool ToldToFail(const char* function);

}  // namespace rollcall::sim

#define SIM_ENTER()                                                       \
  do {                                                                    \
    static const bool told_to_fail = rollcall::sim::ToldToFail(__func__); \
    if (told_to_fail) return CUDA_ERROR_NOT_SUPPORTED;                    \
    if (rollcall::sim::ForkedAway()) return CUDA_ERROR_NOT_INITIALIZED;   \
  } while (false)

// Sets `stream` to the stream that a handle means for the calling thread, or returns the error.
#define SIM_STREAM(handle, stream)                                                  \
  rollcall::sim::StreamRef stream;                                                  \
  do {                                                                              \
    const CUresult found =                                                          \
        rollcall::sim::FindStream(rollcall::sim::CurrentDevice(), handle, &stream); \
    if (found != CUDA_SUCCESS) return found;                                        \
  } while (false)
