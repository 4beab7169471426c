// SPDX-License-Identifier: Apache-2.0
// The part of NVML's binary interface that rollcall-probe-nvml uses: names of functions, numbers
// and layouts as NVIDIA documents them (docs.nvidia.com/deploy/nvml-api). Programs that call NVML
// through dlopen() need no header of CUDA.
#pragma once

struct nvmlDevice_st;
using nvmlDevice_t = nvmlDevice_st*;

enum NvmlReturn : int {
  kNvmlSuccess = 0,
  kNvmlGpuIsLost = 15,
};

struct NvmlPciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device;
  unsigned pci_device_id, pci_subsystem_id;
  char bus_id[32];
};

struct NvmlProcessInfo {
  unsigned pid;
  unsigned long long used_gpu_memory;
  unsigned gpu_instance, compute_instance;
};

enum : int { kNvmlUncorrected = 1, kNvmlVolatile = 0 };  // of ECC errors: since the driver's start

// Reasons for a reduced clock that mean trouble. Others are an idle GPU and limits that people set.
struct NvmlThrottleReason {
  unsigned long long bit;
  const char* words;
};
inline constexpr NvmlThrottleReason kNvmlThrottleReasons[] = {
    {0x08, "hardware slowdown"},
    {0x20, "too hot, by the driver"},
    {0x40, "too hot, by the hardware"},
    {0x80, "power brake"},
};

inline constexpr unsigned kNvmlMostLinks = 18;
inline constexpr int kNvmlLinkCounters = 4;

// NVML_CALL(name, arguments): a function that the probe looks up. One that an old driver lacks is
// left out.
#define NVML_CALLS(NVML_CALL)                                                                      \
  NVML_CALL(nvmlInit_v2, ())                                                                       \
  NVML_CALL(nvmlDeviceGetCount_v2, (unsigned*))                                                    \
  NVML_CALL(nvmlDeviceGetHandleByIndex_v2, (unsigned, nvmlDevice_t*))                              \
  NVML_CALL(nvmlDeviceGetPciInfo_v3, (nvmlDevice_t, NvmlPciInfo*))                                 \
  NVML_CALL(nvmlDeviceGetUUID, (nvmlDevice_t, char*, unsigned))                                    \
  NVML_CALL(nvmlDeviceGetCurrentClocksThrottleReasons, (nvmlDevice_t, unsigned long long*))        \
  NVML_CALL(nvmlDeviceGetTotalEccErrors, (nvmlDevice_t, int, int, unsigned long long*))            \
  NVML_CALL(nvmlDeviceGetRetiredPagesPendingStatus, (nvmlDevice_t, int*))                          \
  NVML_CALL(nvmlDeviceGetRemappedRows, (nvmlDevice_t, unsigned*, unsigned*, unsigned*, unsigned*)) \
  NVML_CALL(nvmlDeviceGetNvLinkState, (nvmlDevice_t, unsigned, int*))                              \
  NVML_CALL(nvmlDeviceGetNvLinkErrorCounter, (nvmlDevice_t, unsigned, int, unsigned long long*))   \
  NVML_CALL(nvmlDeviceGetCurrPcieLinkWidth, (nvmlDevice_t, unsigned*))                             \
  NVML_CALL(nvmlDeviceGetMaxPcieLinkWidth, (nvmlDevice_t, unsigned*))                              \
  NVML_CALL(nvmlDeviceGetPcieReplayCounter, (nvmlDevice_t, unsigned*))                             \
  NVML_CALL(nvmlDeviceGetComputeRunningProcesses_v3, (nvmlDevice_t, unsigned*, NvmlProcessInfo*))
