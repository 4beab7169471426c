// SPDX-License-Identifier: Apache-2.0
// The driver's functions for devices, contexts and errors. A context is its
// device's primary one; there are no others.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <string>

#include "tests/sim/cuda/entry.h"
#include "tests/sim/cuda/memory.h"

namespace {

namespace sim = rollcall::sim;

// Contexts are addresses in this array, which holds no data.
char context_of_device[1024];

CUcontext DeviceContext(int device) {
  return device < 0 ? nullptr : reinterpret_cast<CUcontext>(&context_of_device[device]);
}

// The device of a context; -1 for no context, -2 for an invalid handle.
int ContextDevice(CUcontext context) {
  if (context == nullptr) return -1;
  const ptrdiff_t index = reinterpret_cast<char*>(context) - context_of_device;
  return index >= 0 && index < sim::DeviceCount() ? static_cast<int>(index) : -2;
}

bool IsDevice(CUdevice device) { return device >= 0 && device < sim::DeviceCount(); }

struct ErrorName {
  CUresult code;
  const char* name;
  const char* text;
};
const ErrorName kErrors[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
     "part or all of the requested memory range is already mapped"},
    {CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
     "pointer does not correspond to a registered memory region"},
};

const ErrorName* FindError(CUresult code) {
  for (const ErrorName& error : kErrors) {
    if (error.code == code) return &error;
  }
  return nullptr;
}

}  // namespace

extern "C" {

CUresult cuInit(unsigned flags) {
  SIM_ENTER();
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return sim::DeviceCount() == 0 ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int* version) {
  SIM_ENTER();
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  SIM_ENTER();
  *count = sim::DeviceCount();
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  SIM_ENTER();
  if (!IsDevice(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  SIM_ENTER();
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  snprintf(name, length, "Simulated GPU");
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t* bytes, CUdevice device) {
  SIM_ENTER();
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = sim::kMemoryPerDevice;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  SIM_ENTER();
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = 9;
      break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = 132;
      break;
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1:
      *value = 1;
      break;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
      *value = device + 1;
      break;
    default:
      *value = 0;
  }
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  SIM_ENTER();
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  *context = DeviceContext(device);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  SIM_ENTER();
  return IsDevice(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  SIM_ENTER();
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *context = DeviceContext(sim::CurrentDevice());
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
  SIM_ENTER();
  const int device = ContextDevice(context);
  if (device == -2) return CUDA_ERROR_INVALID_CONTEXT;
  sim::SetCurrentDevice(device);
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext context) {
  SIM_ENTER();
  return sim::PushDevice(ContextDevice(context)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxPopCurrent(CUcontext* context) {
  SIM_ENTER();
  const int device = sim::PopDevice();
  if (device < 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (context != nullptr) *context = DeviceContext(device);
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) {
  SIM_ENTER();
  if (sim::CurrentDevice() < 0) return CUDA_ERROR_INVALID_CONTEXT;
  *device = sim::CurrentDevice();
  return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize() {
  SIM_ENTER();
  if (sim::CurrentDevice() < 0) return CUDA_ERROR_INVALID_CONTEXT;
  sim::SynchronizeDevice(sim::CurrentDevice());
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext* context) {
  SIM_ENTER();
  SIM_STREAM(handle, stream);
  *context = DeviceContext(stream->device);
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult code, const char** name) {
  const ErrorName* error = FindError(code);
  *name = error == nullptr ? "CUDA_ERROR_UNKNOWN" : error->name;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult code, const char** text) {
  const ErrorName* error = FindError(code);
  *text = error == nullptr ? "unknown error" : error->text;
  return CUDA_SUCCESS;
}

// Finds the newest spelling of a function that this library has.
CUresult cuGetProcAddress_v2(const char* symbol, void** function, int, cuuint64_t,
                             CUdriverProcAddressQueryResult* status) {
  static void* self = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  *function = nullptr;
  for (const char* suffix : {"_v3", "_v2", ""}) {
    if (*function == nullptr) *function = dlsym(self, (std::string(symbol) + suffix).c_str());
  }
  const bool found = *function != nullptr;
  if (status != nullptr) {
    *status = found ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

#undef cuGetProcAddress
CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
  return cuGetProcAddress_v2(symbol, function, version, flags, nullptr);
}

}  // extern "C"
