// SPDX-License-Identifier: Apache-2.0
// Events of the simulated GPU: remembered places in a stream's order.
//
// libcudart and libcuda use this code, which is in libcuda.so.1.
#pragma once

#include <cuda.h>

#include "tests/sim/cuda/stream.h"

namespace rollcall::sim {

CUresult CreateEvent(unsigned flags, CUevent* handle);
CUresult DestroyEvent(CUevent handle);
CUresult RecordEvent(CUevent handle, const StreamRef& stream);
CUresult QueryEvent(CUevent handle);
CUresult SynchronizeEvent(CUevent handle);
CUresult ElapsedTime(float* milliseconds, CUevent start, CUevent end);
CUresult WaitForEvent(const StreamRef& stream, CUevent handle);

}  // namespace rollcall::sim
