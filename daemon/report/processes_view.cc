// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/processes_view.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "daemon/report/incident_proto.h"
#include "daemon/report/public_ranks.h"
#include "daemon/words/process_roles.h"
#include "daemon/words/rank_ranges.h"

namespace rollcall {
namespace {

const char* LivenessName(Liveness liveness) {
  switch (liveness) {
    case Liveness::kAlive:
      return "alive";
    case Liveness::kExited:
      return "exited";
    case Liveness::kDied:
      return "died";
    case Liveness::kEnded:
      return "ended";
    case Liveness::kSilent:
      return "silent";
    case Liveness::kUnknown:
      break;
  }
  return "unknown";
}

std::vector<int32_t> DevicesByProcess(const JobState& job) {
  std::vector<int32_t> devices(job.processes.size(), -1);
  for (const auto& [id, comm] : job.communicators) {
    for (const auto& [rank, member] : comm.members) {
      if (member.process < 0 || static_cast<size_t>(member.process) >= devices.size()) continue;
      if (member.device >= 0) devices[static_cast<size_t>(member.process)] = member.device;
    }
  }
  return devices;
}

void FillProcess(const Process& process, int32_t rank, int32_t device, int64_t now_ns,
                 v1::ProcessStatus* status) {
  status->set_rank(rank);
  status->set_host(Utf8(process.host));
  status->set_pid(process.pid);
  status->set_device(device);
  status->set_liveness(LivenessName(process.liveness));
  if (process.liveness == Liveness::kAlive) status->set_state(Utf8(std::string(1, process.state)));
  status->set_wait_channel(Utf8(process.wait_channel));
  status->set_cpu_seconds(process.cpu_seconds);
  status->set_memory_bytes(static_cast<double>(process.memory_bytes));
  status->set_exit_code(process.exit_code);
  status->set_exit_signal(process.exit_signal);
  status->set_command(Utf8(process.command));
  status->set_cpu_moving(process.cpu_moving);
  status->set_inner_pid(process.inner_pid);
  status->set_role(RoleAmong(process.place.functions));
#define PROCESS_PLACE(name) status->set_##name(Utf8(process.name));
#define PROCESS_DETAIL(name) status->set_##name(Utf8(process.name));
#include "proto/facts.def"
  const BlockedCall* oldest = nullptr;
  for (const BlockedCall& call : process.blocked) {
    if (oldest == nullptr || call.since_ns < oldest->since_ns) oldest = &call;
  }
  if (oldest == nullptr || process.liveness != Liveness::kAlive) return;
  const char* name = OpName(oldest->op);
  status->set_doing(name == nullptr ? "a call" : name);
  status->set_doing_seconds(static_cast<double>(now_ns - oldest->since_ns) / 1e9);
}

}  // namespace

void FillProcesses(const JobState& job, int64_t now_ns, const v1::ProcessesRequest& request,
                   v1::ProcessesResponse* response) {
  const PublicRanks ranks(job);
  const RankRanges wanted(std::vector<int32_t>(request.ranks().begin(), request.ranks().end()));
  std::vector<int32_t> chosen;
  for (size_t i = 0; i < job.processes.size(); ++i) {
    const auto index = static_cast<int32_t>(i);
    if (!wanted.empty() && !wanted.Contains(ranks.FindRank(index))) continue;
    if (!request.host().empty() && job.processes[i].host != request.host()) continue;
    chosen.push_back(index);
  }
  std::stable_sort(chosen.begin(), chosen.end(),
                   [&](int32_t a, int32_t b) { return ranks.FindRank(a) < ranks.FindRank(b); });
  response->set_total(static_cast<int32_t>(chosen.size()));
  const int limit =
      request.limit() <= 0 ? kUsualProcesses : std::min(request.limit(), kMaxProcesses);
  const auto first = static_cast<size_t>(std::max(request.offset(), 0));
  const std::vector<int32_t> devices = DevicesByProcess(job);
  for (size_t i = first; i < chosen.size() && i < first + static_cast<size_t>(limit); ++i) {
    const auto index = static_cast<size_t>(chosen[i]);
    FillProcess(job.processes[index], ranks.FindRank(chosen[i]), devices[index], now_ns,
                response->add_processes());
  }
}

}  // namespace rollcall
