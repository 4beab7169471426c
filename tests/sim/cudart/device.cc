// SPDX-License-Identifier: Apache-2.0
// The simulated CUDA runtime: devices, errors and versions.
#include <stdio.h>
#include <string.h>

#include "tests/sim/cuda/memory.h"
#include "tests/sim/cudart/runtime.h"

namespace {

namespace sim = rollcall::sim;
using sim::runtime::Note;

struct ErrorName {
  cudaError_t code;
  const char* name;
  const char* text;
};
const ErrorName kErrors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
    {cudaErrorHostMemoryAlreadyRegistered, "cudaErrorHostMemoryAlreadyRegistered",
     "part or all of the requested memory range is already mapped"},
    {cudaErrorHostMemoryNotRegistered, "cudaErrorHostMemoryNotRegistered",
     "pointer does not correspond to a registered memory region"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureImplicit, "cudaErrorStreamCaptureImplicit",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {cudaErrorCapturedEvent, "cudaErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
};

const ErrorName* FindError(cudaError_t code) {
  for (const ErrorName& error : kErrors) {
    if (error.code == code) return &error;
  }
  return nullptr;
}

bool IsDevice(int device) { return device >= 0 && device < sim::DeviceCount(); }

int Attribute(cudaDeviceAttr attribute, int device) {
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor:
      return 9;
    case cudaDevAttrMultiProcessorCount:
      return 132;
    case cudaDevAttrMaxThreadsPerBlock:
      return 1024;
    case cudaDevAttrWarpSize:
      return 32;
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrCanMapHostMemory:
      return 1;
    case cudaDevAttrPciBusId:
      return device + 1;
    default:
      return 0;
  }
}

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  if (sim::ForkedAway()) return Note(cudaErrorInitializationError);
  *count = sim::DeviceCount();
  return Note(*count == 0 ? cudaErrorNoDevice : cudaSuccess);
}

cudaError_t cudaGetDevice(int* device) { return Note(sim::runtime::FindDevice(device)); }

cudaError_t cudaSetDevice(int device) {
  if (sim::ForkedAway()) return Note(cudaErrorInitializationError);
  if (!IsDevice(device)) return Note(cudaErrorInvalidDevice);
  sim::SetCurrentDevice(device);
  return cudaSuccess;
}

cudaError_t cudaInitDevice(int device, unsigned, unsigned) {
  return Note(IsDevice(device) ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaSetDeviceFlags(unsigned) { return cudaSuccess; }

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (!IsDevice(device)) return Note(cudaErrorInvalidDevice);
  memset(properties, 0, sizeof(*properties));
  snprintf(properties->name, sizeof(properties->name), "Simulated GPU");
  properties->totalGlobalMem = sim::kMemoryPerDevice;
  properties->major = 9;
  properties->multiProcessorCount = 132;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = 1024;
  properties->unifiedAddressing = 1;
  properties->canMapHostMemory = 1;
  properties->pciBusID = device + 1;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (!IsDevice(device)) return Note(cudaErrorInvalidDevice);
  *value = Attribute(attribute, device);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  if (!IsDevice(device)) return Note(cudaErrorInvalidDevice);
  snprintf(text, length, "0000:%02X:00.0", device + 1);
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 1;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaSuccess; }

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  int device = 0;
  const cudaError_t found = sim::runtime::FindDevice(&device);
  if (found != cudaSuccess) return Note(found);
  if (sim::AnyCapture(sim::DeviceAt(device))) return Note(cudaErrorStreamCaptureUnsupported);
  sim::SynchronizeDevice(device);
  return cudaSuccess;
}

cudaError_t cudaDeviceReset() { return cudaDeviceSynchronize(); }

cudaError_t cudaGetLastError() {
  const cudaError_t error = sim::runtime::last_error;
  sim::runtime::last_error = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError() { return sim::runtime::last_error; }

const char* cudaGetErrorName(cudaError_t code) {
  const ErrorName* error = FindError(code);
  return error == nullptr ? "cudaErrorUnknown" : error->name;
}

const char* cudaGetErrorString(cudaError_t code) {
  const ErrorName* error = FindError(code);
  return error == nullptr ? "unknown error" : error->text;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDA_VERSION;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

}  // extern "C"
