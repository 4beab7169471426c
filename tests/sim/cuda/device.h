// SPDX-License-Identifier: Apache-2.0
// Devices of the simulated GPU, their streams, and which device a thread uses.
//
// The three simulated libraries use this code, which is in libcuda.so.1. It looks
// handles up and never follows them, so a wrong handle is an error and not a crash.
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
// The same, but makes device 0 current if the thread has none, as the CUDA runtime does.
int RequireDevice();
bool SetCurrentDevice(int device);  // -1 for none
bool PushDevice(int device);
int PopDevice();

// True in a child of a fork after the parent used the simulator. Such a child has no threads to run
// work, as a real child has no GPU.
bool ForkedAway();

// The stream that a handle means on a device. The handle is NULL, the legacy or the per-thread
// handle, or a handle from CreateStream().
CUresult FindStream(int device, CUstream handle, StreamRef* stream);
CUresult CreateStream(int device, unsigned flags, int priority, CUstream* handle);
CUresult DestroyStream(CUstream handle);
CUresult SynchronizeStream(const StreamRef& stream);
void SynchronizeDevice(int device);

// Whether any stream of the device is in a capture.
bool AnyCapture(Device& device);

// Captures.
CUresult BeginCapture(const StreamRef& stream);
CUresult EndCapture(const StreamRef& stream, GraphRef* graph);
CUresult CaptureStatus(const StreamRef& stream, CUstreamCaptureStatus* status);
uint64_t CaptureId(const StreamRef& stream);  // 0 if it is in none
CUresult LaunchGraph(const GraphRef& graph, const StreamRef& stream);

}  // namespace rollcall::sim
