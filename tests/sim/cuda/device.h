// SPDX-License-Identifier: Apache-2.0
// Devices of the simulated GPU, their streams, and which device a thread uses.
//
// Used by the three simulated libraries; lives in libcuda.so.1. Handles are
// looked up, never followed, so a wrong one is an error and not a crash.
#pragma once

#include <cuda.h>

#include <mutex>
#include <vector>

#include "tests/sim/cuda/stream.h"

namespace rollcall::sim {

struct Device {
  std::mutex mutex;                // the order of all work on the device, and captures
  std::vector<StreamRef> streams;  // all but the NULL stream
  StreamRef legacy;                // the NULL stream
};

int DeviceCount();
Device& DeviceAt(int device);

// The calling thread's device, -1 if it has none.
int CurrentDevice();
// The same, but device 0 becomes current if there is none: the CUDA runtime's way.
int RequireDevice();
bool SetCurrentDevice(int device);  // -1 for none
bool PushDevice(int device);
int PopDevice();

// True in a child that was forked after its parent used the simulator: there
// are no threads here to run work, as there is no GPU in such a child.
bool ForkedAway();

// Which stream a handle means on a device: NULL, the legacy and the per-thread
// handle, or one from CreateStream().
CUresult FindStream(int device, CUstream handle, StreamRef* stream);
CUresult CreateStream(int device, unsigned flags, int priority, CUstream* handle);
CUresult DestroyStream(CUstream handle);
CUresult SynchronizeStream(const StreamRef& stream);
void SynchronizeDevice(int device);

// Whether anything of the device is being captured.
bool AnyCapture(Device& device);

// Captures.
CUresult BeginCapture(const StreamRef& stream);
CUresult EndCapture(const StreamRef& stream, GraphRef* graph);
CUresult CaptureStatus(const StreamRef& stream, CUstreamCaptureStatus* status);
uint64_t CaptureId(const StreamRef& stream);  // 0: it is in none
CUresult LaunchGraph(const GraphRef& graph, const StreamRef& stream);

}  // namespace rollcall::sim
