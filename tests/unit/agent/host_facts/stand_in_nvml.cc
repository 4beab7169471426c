// SPDX-License-Identifier: Apache-2.0
// A stand-in for the library of NVIDIA's driver. It lies beside a folder's file "gpus", a line for
// each GPU: BUS WIDTH ECC THROTTLE LINKS PID, or "BUS lost". Link errors and PCIe replays grow with
// each question about a GPU that is throttled. A file "hangs" makes the question for ECC errors
// block.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <string>

#include "agent/host_facts/nvml_api.h"

struct nvmlDevice_st {
  unsigned bus = 0, width = 0, ecc = 0, throttle = 0, links = 0, pid = 0;
  bool is_lost = false;
  unsigned asked = 0;
};

namespace {

constexpr int kNotSupported = 3;
constexpr unsigned kMost = 16;
nvmlDevice_st gpus[kMost];
unsigned count = 0;
bool hangs = false;

std::string Folder() {
  Dl_info info;
  dladdr(reinterpret_cast<void*>(&Folder), &info);
  const std::string path = info.dli_fname;
  return path.substr(0, path.rfind('/'));
}

int Answer(nvmlDevice_t gpu) { return gpu->is_lost ? kNvmlGpuIsLost : kNvmlSuccess; }

}  // namespace

extern "C" {

int nvmlInit_v2() {
  FILE* file = fopen((Folder() + "/gpus").c_str(), "r");
  if (file == nullptr) return 9;
  char line[256];
  while (count < kMost && fgets(line, sizeof(line), file) != nullptr) {
    nvmlDevice_st* gpu = &gpus[count++];
    gpu->is_lost = strstr(line, "lost") != nullptr;
    sscanf(line, "%x %u %u %u %u %u", &gpu->bus, &gpu->width, &gpu->ecc, &gpu->throttle,
           &gpu->links, &gpu->pid);
  }
  fclose(file);
  hangs = access((Folder() + "/hangs").c_str(), F_OK) == 0;
  return kNvmlSuccess;
}
const char* nvmlErrorString(int result) {
  return result == kNvmlGpuIsLost ? "GPU is lost" : "Driver Not Loaded";
}
int nvmlDeviceGetCount_v2(unsigned* number) {
  *number = count;
  return kNvmlSuccess;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* gpu) {
  *gpu = &gpus[index];
  return kNvmlSuccess;
}
int nvmlDeviceGetPciInfo_v3(nvmlDevice_t gpu, NvmlPciInfo* info) {
  info->domain = 0;
  info->bus = gpu->bus;
  info->device = 0;
  return kNvmlSuccess;
}
int nvmlDeviceGetUUID(nvmlDevice_t gpu, char* text, unsigned size) {
  snprintf(text, size, "GPU-%02x", gpu->bus);
  return Answer(gpu);
}
int nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t gpu, unsigned long long* reasons) {
  *reasons = gpu->throttle;
  return Answer(gpu);
}
int nvmlDeviceGetTotalEccErrors(nvmlDevice_t gpu, int, int, unsigned long long* errors) {
  while (hangs) pause();
  *errors = gpu->ecc;
  return Answer(gpu);
}
int nvmlDeviceGetRemappedRows(nvmlDevice_t gpu, unsigned*, unsigned*, unsigned* pending,
                              unsigned*) {
  *pending = gpu->ecc > 0;
  return Answer(gpu);
}
int nvmlDeviceGetNvLinkState(nvmlDevice_t gpu, unsigned link, int* is_active) {
  if (link >= 4) return kNotSupported;
  *is_active = link < gpu->links;
  return Answer(gpu);
}
int nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t gpu, unsigned link, int counter,
                                    unsigned long long* errors) {
  if (link != 0 || counter != 0) return kNotSupported;
  *errors = gpu->throttle != 0 ? 5 * gpu->asked++ : 0;
  return Answer(gpu);
}
int nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t gpu, unsigned* width) {
  *width = gpu->width;
  return Answer(gpu);
}
int nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t gpu, unsigned* width) {
  *width = 16;
  return Answer(gpu);
}
int nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t gpu, unsigned* number,
                                            NvmlProcessInfo* processes) {
  *number = 1;
  processes[0].pid = gpu->pid;
  return Answer(gpu);
}

}  // extern "C"
