// SPDX-License-Identifier: Apache-2.0
#include "agent/host_facts/probes.h"

namespace rollcall {
namespace {

constexpr Probe kProbes[] = {
    {"kernel_log", ProbeKernelLog},
    {"infiniband", ProbeInfiniband},
    {"network", ProbeNetwork},
    {"cgroup", ProbeCgroups},
    {"pressure", ProbePressure},
    {"tasks", ProbeTasks},
    {"clock", ProbeClock},
    {"mounts", ListMounts},
    {kFileSystemProbe, AskFileSystem},
};

}  // namespace

const Probe* FindProbe(const std::string& name) {
  for (const Probe& probe : kProbes) {
    if (name == probe.name) return &probe;
  }
  return nullptr;
}

std::vector<std::string> HostProbes() {
  std::vector<std::string> names;
  for (const Probe& probe : kProbes) {
    if (probe.run != AskFileSystem) names.emplace_back(probe.name);
  }
  return names;
}

}  // namespace rollcall
