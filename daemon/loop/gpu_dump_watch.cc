// SPDX-License-Identifier: Apache-2.0
#include "daemon/loop/gpu_dump_watch.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "daemon/model/progress.h"

namespace rollcall {
namespace {

bool CanBeDumped(const JobState& state, int32_t index) {
  if (index < 0 || static_cast<size_t>(index) >= state.processes.size()) return false;
  const Process& process = state.processes[static_cast<size_t>(index)];
  return process.pid > 0 && !HasEnded(process) && !IsSilent(process);
}

GpuDumpTarget DumpTargetOf(const JobState& state, int32_t index) {
  const Process& process = state.processes[static_cast<size_t>(index)];
  GpuDumpTarget target;
  target.rank = process.global_rank;
  target.host = process.host;
  target.pid = process.pid;
  // The request would stay in its pipe until the process goes on.
  if (IsSuspended(process)) target.why_not = "its process is stopped or frozen";
  return target;
}

}  // namespace

std::vector<GpuDumpTarget> ChooseGpuDumps(const JobState& state,
                                          const std::vector<Verdict>& verdicts) {
  std::vector<GpuDumpTarget> targets;
  const auto hang = std::find_if(verdicts.begin(), verdicts.end(),
                                 [](const Verdict& verdict) { return !IsWarning(verdict.cause); });
  if (hang == verdicts.end()) return targets;
  for (const Culprit& culprit : hang->culprits) {
    if (!CanBeDumped(state, culprit.process)) continue;
    targets.push_back(DumpTargetOf(state, culprit.process));
    targets.back().device = culprit.device;
    targets.back().is_culprit = true;
    break;
  }
  for (const int32_t index : hang->waiting_processes) {
    const bool is_blamed = std::any_of(hang->culprits.begin(), hang->culprits.end(),
                                       [&](const Culprit& c) { return c.process == index; });
    if (is_blamed || !CanBeDumped(state, index)) continue;
    targets.push_back(DumpTargetOf(state, index));
    break;
  }
  return targets;
}

std::optional<GpuDumpRequest> GpuDumpWatch::Next(const JobKey& job, const std::string& incident,
                                                 std::vector<GpuDumpTarget> targets) {
  if (incident.empty() || !asked_.insert(incident).second) return std::nullopt;
  return GpuDumpRequest{job, incident, std::move(targets)};
}

}  // namespace rollcall
