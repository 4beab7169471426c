// SPDX-License-Identifier: Apache-2.0
// rollcall-probe-nvml: asks NVIDIA's management library about the GPUs of this host, and prints a
// line for each fact, as rollcall-probe does (fact.h).
//
// A program of its own, because it loads the driver's library, which may crash or hang and needs
// glibc: the other programs may be static. Needs libc and libdl only. It prints each fact at once,
// so that what it found before a call that hangs is not lost.
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "agent/host_facts/nvml_api.h"
#include "proto/host_facts.h"

namespace rollcall {
namespace {

constexpr unsigned kLongestSeconds = 60;  // if the agent that should end it is gone
constexpr unsigned kMostDevices = 64;
constexpr unsigned kMostProcesses = 64;

struct Nvml {
#define NVML_CALL(name, arguments) int(*name) arguments = nullptr;
  NVML_CALLS(NVML_CALL)
#undef NVML_CALL
  const char* (*nvmlErrorString)(int) = nullptr;
};

template <typename Function>
void Find(void* library, const char* name, Function* function) {
  void* const found = dlsym(library, name);
  memcpy(function, &found, sizeof(found));
}

bool Load(const char* path, Nvml* nvml) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return false;
#define NVML_CALL(name, arguments) Find(library, #name, &nvml->name);
  NVML_CALLS(NVML_CALL)
#undef NVML_CALL
  Find(library, "nvmlErrorString", &nvml->nvmlErrorString);
  return nvml->nvmlInit_v2 != nullptr && nvml->nvmlDeviceGetCount_v2 != nullptr &&
         nvml->nvmlDeviceGetHandleByIndex_v2 != nullptr;
}

int End(const char* outcome, const char* note) {
  printf("end\t%s\t%s\n", outcome, note);
  return fflush(stdout) == 0 ? 0 : 1;
}

struct Device {
  nvmlDevice_t handle = nullptr;
  char subject[64] = {};
  bool is_lost = false;
  // The first sample of counters.
  unsigned long long link_errors = 0;
  unsigned pcie_replays = 0;
};

void Print(HostFactKind kind, const Device& device, long long value, unsigned pid,
           const char* text) {
  printf("%s\t%s\t%lld\t0\t%u\t%s\n", InfoOf(kind).text, device.subject, value, pid, text);
  fflush(stdout);
}

class Look {
 public:
  explicit Look(const Nvml& nvml) : nvml_(nvml) {}

  void Open(unsigned index, Device* device) const {
    snprintf(device->subject, sizeof(device->subject), "GPU #%u", index);
    const int result = nvml_.nvmlDeviceGetHandleByIndex_v2(index, &device->handle);
    if (result != kNvmlSuccess) return SetLost(result, device);
    NvmlPciInfo pci;
    memset(&pci, 0, sizeof(pci));
    if (nvml_.nvmlDeviceGetPciInfo_v3 != nullptr &&
        Works(nvml_.nvmlDeviceGetPciInfo_v3(device->handle, &pci), device)) {
      snprintf(device->subject, sizeof(device->subject), "GPU %04x:%02x:%02x.0",
               pci.domain & 0xffff, pci.bus & 0xff, pci.device & 0xff);
    }
    char uuid[96] = {};
    if (nvml_.nvmlDeviceGetUUID != nullptr &&
        Works(nvml_.nvmlDeviceGetUUID(device->handle, uuid, sizeof(uuid) - 1), device)) {
      Print(HostFactKind::kGpu, *device, index, 0, uuid);
    }
  }

  void AddNow(Device* device) const {
    if (device->is_lost) return;
    AddThrottle(device);
    AddMemory(device);
    AddPcie(device);
    AddProcesses(device);
    AddLinks(device);
  }

  void Sample(Device* device) const {
    if (device->is_lost) return;
    device->link_errors = LinkErrors(device);
    device->pcie_replays = Replays(device);
  }

  void AddGrowth(Device* device) const {
    if (device->is_lost) return;
    const unsigned long long errors = LinkErrors(device);
    const unsigned replays = Replays(device);
    if (errors > device->link_errors) {
      Print(HostFactKind::kNvlinkErrors, *device,
            static_cast<long long>(errors - device->link_errors), 0, "");
    }
    if (replays > device->pcie_replays) {
      Print(HostFactKind::kGpuPcieReplays, *device, replays - device->pcie_replays, 0, "");
    }
  }

 private:
  // A GPU that has fallen off the bus answers each call with this error.
  bool Works(int result, Device* device) const {
    if (result == kNvmlGpuIsLost) SetLost(result, device);
    return result == kNvmlSuccess;
  }

  void SetLost(int result, Device* device) const {
    if (device->is_lost) return;
    device->is_lost = true;
    Print(HostFactKind::kGpuLost, *device, result, 0,
          nvml_.nvmlErrorString == nullptr ? "" : nvml_.nvmlErrorString(result));
  }

  void AddThrottle(Device* device) const {
    unsigned long long reasons = 0;
    if (nvml_.nvmlDeviceGetCurrentClocksThrottleReasons == nullptr ||
        !Works(nvml_.nvmlDeviceGetCurrentClocksThrottleReasons(device->handle, &reasons), device)) {
      return;
    }
    for (const NvmlThrottleReason& reason : kNvmlThrottleReasons) {
      if ((reasons & reason.bit) == 0) continue;
      Print(HostFactKind::kGpuThrottled, *device, static_cast<long long>(reason.bit), 0,
            reason.words);
    }
  }

  void AddMemory(Device* device) const {
    unsigned long long errors = 0;
    if (nvml_.nvmlDeviceGetTotalEccErrors != nullptr &&
        Works(nvml_.nvmlDeviceGetTotalEccErrors(device->handle, kNvmlUncorrected, kNvmlVolatile,
                                                &errors),
              device) &&
        errors > 0) {
      Print(HostFactKind::kGpuEcc, *device, static_cast<long long>(errors), 0, "");
    }
    int pending = 0;
    if (nvml_.nvmlDeviceGetRetiredPagesPendingStatus != nullptr &&
        Works(nvml_.nvmlDeviceGetRetiredPagesPendingStatus(device->handle, &pending), device) &&
        pending != 0) {
      Print(HostFactKind::kGpuPagesPending, *device, 1, 0, "pages wait for retirement");
    }
    unsigned corrected = 0, uncorrected = 0, is_pending = 0, failed = 0;
    if (nvml_.nvmlDeviceGetRemappedRows == nullptr ||
        !Works(nvml_.nvmlDeviceGetRemappedRows(device->handle, &corrected, &uncorrected,
                                               &is_pending, &failed),
               device)) {
      return;
    }
    if (is_pending != 0) {
      Print(HostFactKind::kGpuPagesPending, *device, 1, 0, "rows wait for remapping");
    }
    if (failed != 0) Print(HostFactKind::kGpuPagesPending, *device, 2, 0, "a remapping has failed");
  }

  void AddPcie(Device* device) const {
    unsigned width = 0, most = 0;
    if (nvml_.nvmlDeviceGetCurrPcieLinkWidth == nullptr ||
        nvml_.nvmlDeviceGetMaxPcieLinkWidth == nullptr ||
        !Works(nvml_.nvmlDeviceGetCurrPcieLinkWidth(device->handle, &width), device) ||
        !Works(nvml_.nvmlDeviceGetMaxPcieLinkWidth(device->handle, &most), device)) {
      return;
    }
    char text[32];
    snprintf(text, sizeof(text), "of %u", most);
    Print(HostFactKind::kGpuPcieWidth, *device, width, 0, text);
  }

  void AddProcesses(Device* device) const {
    NvmlProcessInfo processes[kMostProcesses];
    unsigned count = kMostProcesses;
    if (nvml_.nvmlDeviceGetComputeRunningProcesses_v3 == nullptr ||
        !Works(nvml_.nvmlDeviceGetComputeRunningProcesses_v3(device->handle, &count, processes),
               device)) {
      return;
    }
    for (unsigned i = 0; i < count && i < kMostProcesses; ++i) {
      Print(HostFactKind::kGpuProcess, *device, 0, processes[i].pid, "");
    }
  }

  void AddLinks(Device* device) const {
    int up = 0, all = 0;
    for (unsigned link = 0; link < kNvmlMostLinks && nvml_.nvmlDeviceGetNvLinkState != nullptr;
         ++link) {
      int is_active = 0;
      if (!Works(nvml_.nvmlDeviceGetNvLinkState(device->handle, link, &is_active), device))
        continue;
      ++all;
      up += is_active != 0;
    }
    char text[32];
    snprintf(text, sizeof(text), "of %d", all);
    if (all > 0) Print(HostFactKind::kNvlinkState, *device, up, 0, text);
  }

  unsigned long long LinkErrors(Device* device) const {
    unsigned long long sum = 0;
    if (nvml_.nvmlDeviceGetNvLinkErrorCounter == nullptr) return sum;
    for (unsigned link = 0; link < kNvmlMostLinks; ++link) {
      for (int counter = 0; counter < kNvmlLinkCounters; ++counter) {
        unsigned long long errors = 0;
        if (Works(nvml_.nvmlDeviceGetNvLinkErrorCounter(device->handle, link, counter, &errors),
                  device)) {
          sum += errors;
        }
      }
    }
    return sum;
  }

  unsigned Replays(Device* device) const {
    unsigned replays = 0;
    if (nvml_.nvmlDeviceGetPcieReplayCounter == nullptr) return 0;
    return Works(nvml_.nvmlDeviceGetPcieReplayCounter(device->handle, &replays), device) ? replays
                                                                                         : 0;
  }

  const Nvml& nvml_;
};

int Run(const char* library, long interval_ms) {
  static Nvml nvml;
  if (!Load(library, &nvml)) return End("absent", "the library of NVIDIA's driver is not there");
  const int begun = nvml.nvmlInit_v2();
  unsigned count = 0;
  const int counted = begun == kNvmlSuccess ? nvml.nvmlDeviceGetCount_v2(&count) : begun;
  if (counted != kNvmlSuccess) {
    return End("failed", nvml.nvmlErrorString == nullptr ? "NVML does not start"
                                                         : nvml.nvmlErrorString(counted));
  }
  static Device devices[kMostDevices];
  if (count > kMostDevices) count = kMostDevices;
  const Look look(nvml);
  for (unsigned i = 0; i < count; ++i) {
    look.Open(i, &devices[i]);
    look.AddNow(&devices[i]);
    look.Sample(&devices[i]);
  }
  const timespec interval = {interval_ms / 1000, interval_ms % 1000 * 1'000'000};
  nanosleep(&interval, nullptr);
  for (unsigned i = 0; i < count; ++i) look.AddGrowth(&devices[i]);
  return count == 0 ? End("absent", "no GPU") : End("ok", "");
}

}  // namespace
}  // namespace rollcall

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  alarm(rollcall::kLongestSeconds);
  const char* library = "libnvidia-ml.so.1";
  long interval_ms = 1000;
  for (int i = 1; i < argc; ++i) {
    constexpr char kLibrary[] = "--library=", kInterval[] = "--interval-ms=";
    if (strncmp(argv[i], kLibrary, sizeof(kLibrary) - 1) == 0)
      library = argv[i] + sizeof(kLibrary) - 1;
    if (strncmp(argv[i], kInterval, sizeof(kInterval) - 1) == 0) {
      interval_ms = strtol(argv[i] + sizeof(kInterval) - 1, nullptr, 10);
    }
  }
  return rollcall::Run(library, interval_ms);
}
