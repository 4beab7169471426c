// SPDX-License-Identifier: Apache-2.0
// The driver's functions for streams, events, host functions and captures.
#include <atomic>

#include "tests/sim/cuda/entry.h"
#include "tests/sim/cuda/event.h"

namespace {

namespace sim = rollcall::sim;

// Writes a word in stream order, as the GPU does: with one atomic store.
template <typename T>
CUresult WriteValue(CUstream handle, CUdeviceptr address, T value) {
  SIM_STREAM(handle, stream);
  if (address == 0 || address % sizeof(T) != 0) return CUDA_ERROR_INVALID_VALUE;
  sim::Enqueue(stream, [address, value] {
    __atomic_store_n(reinterpret_cast<T*>(address), value, __ATOMIC_RELEASE);
  });
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult cuStreamCreate(CUstream* handle, unsigned flags) {
  SIM_ENTER();
  return sim::CreateStream(sim::CurrentDevice(), flags, 0, handle);
}

CUresult cuStreamCreateWithPriority(CUstream* handle, unsigned flags, int priority) {
  SIM_ENTER();
  return sim::CreateStream(sim::CurrentDevice(), flags, priority, handle);
}

CUresult cuStreamDestroy(CUstream handle) {
  SIM_ENTER();
  return sim::DestroyStream(handle);
}

CUresult cuStreamSynchronize(CUstream handle) {
  SIM_ENTER();
  SIM_STREAM(handle, stream);
  return sim::SynchronizeStream(stream);
}

CUresult cuStreamQuery(CUstream handle) {
  SIM_ENTER();
  SIM_STREAM(handle, stream);
  return sim::Reached(stream->Tail()) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned) {
  SIM_ENTER();
  SIM_STREAM(handle, stream);
  return sim::WaitForEvent(stream, event);
}

CUresult cuStreamWriteValue32_v2(CUstream handle, CUdeviceptr address, cuuint32_t value, unsigned) {
  SIM_ENTER();
  return WriteValue(handle, address, value);
}

CUresult cuStreamWriteValue64_v2(CUstream handle, CUdeviceptr address, cuuint64_t value, unsigned) {
  SIM_ENTER();
  return WriteValue(handle, address, value);
}

#undef cuStreamWriteValue32
#undef cuStreamWriteValue64
CUresult cuStreamWriteValue32(CUstream handle, CUdeviceptr address, cuuint32_t value, unsigned) {
  SIM_ENTER();
  return WriteValue(handle, address, value);
}

CUresult cuStreamWriteValue64(CUstream handle, CUdeviceptr address, cuuint64_t value, unsigned) {
  SIM_ENTER();
  return WriteValue(handle, address, value);
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
  SIM_ENTER();
  SIM_STREAM(handle, stream);
  return sim::CaptureStatus(stream, status);
}

CUresult cuStreamGetCaptureInfo_v2(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph*, const CUgraphNode**, size_t*) {
  SIM_ENTER();
  SIM_STREAM(handle, stream);
  if (id != nullptr) *id = sim::CaptureId(stream);
  return sim::CaptureStatus(stream, status);
}

CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void* data) {
  SIM_ENTER();
  SIM_STREAM(handle, stream);
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  sim::Enqueue(stream, [=] { function(data); });
  return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent* event, unsigned flags) {
  SIM_ENTER();
  return sim::CreateEvent(flags, event);
}

CUresult cuEventDestroy(CUevent event) {
  SIM_ENTER();
  return sim::DestroyEvent(event);
}

CUresult cuEventRecord(CUevent event, CUstream handle) {
  SIM_ENTER();
  SIM_STREAM(handle, stream);
  return sim::RecordEvent(event, stream);
}

CUresult cuEventQuery(CUevent event) {
  SIM_ENTER();
  return sim::QueryEvent(event);
}

CUresult cuEventSynchronize(CUevent event) {
  SIM_ENTER();
  return sim::SynchronizeEvent(event);
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  SIM_ENTER();
  return sim::ElapsedTime(milliseconds, start, end);
}

}  // extern "C"
