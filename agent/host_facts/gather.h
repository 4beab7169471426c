// SPDX-License-Identifier: Apache-2.0
// All facts about this host, gathered once by all probes.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/host_facts/fact.h"
#include "agent/host_facts/probe_runner.h"

namespace rollcall {

struct GatherOptions {
  // The folder of rollcall-probe and rollcall-probe-nvml; empty means that of this program.
  std::string programs;
  std::string root;                     // as in HostFiles
  std::string nvml_library;             // empty means the system's
  int64_t interval_ns = 1'000'000'000;  // between two samples of a counter
  int64_t deadline_ns = 4'000'000'000;  // of each probe
};

struct GatheredFacts {
  std::vector<Fact> facts;
  // The outcome of each probe by its name, file systems left out.
  std::vector<std::pair<std::string, ProbeResult>> probes;
};

class Gatherer {
 public:
  explicit Gatherer(GatherOptions options);

  // Takes up to two deadlines. `pids`: the job's processes on this host.
  GatheredFacts Gather(const std::vector<pid_t>& pids);

 private:
  ProbeCommand Command(const std::string& probe, const std::vector<pid_t>& pids) const;
  ProbeCommand GpuCommand() const;
  void AskFileSystems(const std::vector<Fact>& mounts, GatheredFacts* gathered);

  const GatherOptions options_;
  const std::string programs_;
  ProbeRunner runner_;
};

}  // namespace rollcall
