// SPDX-License-Identifier: Apache-2.0
#include "cli/diagnose/host_facts.h"

#include "agent/link/host_facts_service.h"
#include "base/durations.h"

namespace rollcall {
namespace {

// Two rounds of probes fit into the time between the first and the last sample.
constexpr int64_t kProbeNs = 5 * kSecond / 2;

v1::HostFacts LookAtThisHost(const std::vector<pid_t>& pids,
                             const std::shared_ptr<const Redactor>& redactor) {
  HostFactsOptions options;
  options.max_per_minute = 0;
  options.redactor = redactor;
  options.gather.deadline_ns = kProbeNs;
  std::vector<ProcessId> processes;
  for (const pid_t pid : pids) processes.push_back({pid, 0});
  return HostFactsService(options, [](ProcessId) { return true; }).Take(processes);
}

}  // namespace

HostFactsBeside::HostFactsBeside(const std::vector<pid_t>& pids,
                                 const std::shared_ptr<const Redactor>& redactor)
    : facts_([pids, redactor] { return LookAtThisHost(pids, redactor); }) {}

}  // namespace rollcall
