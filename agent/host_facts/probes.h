// SPDX-License-Identifier: Apache-2.0
// The probes: each looks at one part of the host, once. The table in probes.cc has them all.
//
// A probe runs in a process of its own (probe_main.cc), because a driver, a file of /proc or a file
// system may never answer. It changes nothing on the host.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "agent/host_facts/fact.h"
#include "agent/host_facts/host_files.h"

namespace rollcall {

struct ProbeInput {
  HostFiles files;
  std::vector<pid_t> pids;              // the job's processes on this host
  int64_t interval_ns = 1'000'000'000;  // between the two samples of a counter
  std::string path;                     // of the file system to ask; see AskFileSystem()
  void (*pause)(int64_t ns) = Pause;    // between the two samples
};

ProbeResult ProbeKernelLog(const ProbeInput& input);
ProbeResult ProbeInfiniband(const ProbeInput& input);
ProbeResult ProbeNetwork(const ProbeInput& input);
ProbeResult ProbeCgroups(const ProbeInput& input);
ProbeResult ProbePressure(const ProbeInput& input);
ProbeResult ProbeTasks(const ProbeInput& input);
ProbeResult ProbeClock(const ProbeInput& input);
// Returns the file systems that the job's processes see, as kMount.
ProbeResult ListMounts(const ProbeInput& input);
// Asks one file system how much room it has. It blocks while the file system does not answer.
ProbeResult AskFileSystem(const ProbeInput& input);

struct Probe {
  const char* name;
  ProbeResult (*run)(const ProbeInput&);
};

// Returns the probe of this name, or nullptr.
const Probe* FindProbe(const std::string& name);
// The names of the probes that look at the whole host: all but AskFileSystem().
std::vector<std::string> HostProbes();
inline constexpr char kFileSystemProbe[] = "file_system";

}  // namespace rollcall
