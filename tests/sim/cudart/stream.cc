// SPDX-License-Identifier: Apache-2.0
// The simulated CUDA runtime: streams, events and host functions.
#include "tests/sim/cuda/event.h"
#include "tests/sim/cudart/runtime.h"

namespace {

namespace sim = rollcall::sim;
using sim::runtime::Note;
using sim::runtime::OnStream;

cudaError_t Create(cudaStream_t* stream, unsigned flags, int priority) {
  int device = 0;
  const cudaError_t found = sim::runtime::FindDevice(&device);
  if (found != cudaSuccess) return Note(found);
  return Note(sim::CreateStream(device, flags, priority, stream));
}

cudaError_t CreateEvent(cudaEvent_t* event, unsigned flags) {
  int device = 0;
  const cudaError_t found = sim::runtime::FindDevice(&device);
  return found != cudaSuccess ? Note(found) : Note(sim::CreateEvent(flags, event));
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return Create(stream, 0, 0); }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return Create(stream, flags, 0);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return Create(stream, flags, priority);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) { return Note(sim::DestroyStream(stream)); }

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return OnStream(stream, sim::SynchronizeStream);
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return OnStream(stream, [](const sim::StreamRef& on) {
    return sim::Reached(on->Tail()) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return OnStream(stream, [=](const sim::StreamRef& on) { return sim::WaitForEvent(on, event); });
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  return OnStream(stream, [=](const sim::StreamRef& on) {
    *flags = on->flags;
    return CUDA_SUCCESS;
  });
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return OnStream(stream, [=](const sim::StreamRef& on) {
    *priority = on->priority;
    return CUDA_SUCCESS;
  });
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  return OnStream(stream, [=](const sim::StreamRef& on) {
    *device = on->device;
    return CUDA_SUCCESS;
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  if (function == nullptr) return Note(cudaErrorInvalidValue);
  return OnStream(stream, [=](const sim::StreamRef& on) {
    sim::Enqueue(on, [=] { function(data); });
    return CUDA_SUCCESS;
  });
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data,
                                  unsigned) {
  if (callback == nullptr) return Note(cudaErrorInvalidValue);
  return OnStream(stream, [=](const sim::StreamRef& on) {
    sim::Enqueue(on, [=] { callback(stream, cudaSuccess, data); });
    return CUDA_SUCCESS;
  });
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return CreateEvent(event, 0); }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return CreateEvent(event, flags);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) { return Note(sim::DestroyEvent(event)); }

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return OnStream(stream, [=](const sim::StreamRef& on) { return sim::RecordEvent(event, on); });
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  return cudaEventRecord(event, stream);
}

cudaError_t cudaEventQuery(cudaEvent_t event) { return Note(sim::QueryEvent(event)); }

cudaError_t cudaEventSynchronize(cudaEvent_t event) { return Note(sim::SynchronizeEvent(event)); }

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return Note(sim::ElapsedTime(milliseconds, start, end));
}

}  // extern "C"
