#include "daemon/status.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

bool Ended(const Process& process) {
  return process.liveness == Liveness::kExited || process.liveness == Liveness::kDied;
}

int64_t WaitingSince(const Member& member) {
  int64_t since = 0;
  for (const int64_t candidate :
       {member.waiting_since_ns, member.host_blocked_since_ns, member.host_waits_since_ns}) {
    if (candidate != 0 && (since == 0 || candidate < since)) since = candidate;
  }
  return since;
}

void FillCommunicator(const Communicator& comm, int64_t now_ns, v1::CommunicatorStatus* status) {
  status->set_id(absl::StrCat(absl::Hex(comm.id, absl::kZeroPad16)));
  status->set_name(comm.name);
  status->set_size(comm.size);
  status->set_members(static_cast<int32_t>(comm.members.size()));
  uint64_t least = UINT64_MAX, most = 0;
  int64_t longest_ns = 0;
  int waiting = 0;
  Op newest = Op::kNone;
  for (const auto& [rank, member] : comm.members) {
    least = std::min(least, member.entered);
    if (member.entered >= most && !member.records.empty()) newest = member.records.back().args.op;
    most = std::max(most, member.entered);
    const int64_t since = WaitingSince(member);
    if (since == 0) continue;
    ++waiting;
    longest_ns = std::max(longest_ns, now_ns - since);
  }
  status->set_position_min(comm.members.empty() ? 0 : static_cast<double>(least));
  status->set_position_max(static_cast<double>(most));
  status->set_waiting(waiting);
  status->set_waited_seconds(static_cast<double>(longest_ns) / 1e9);
  const char* name = OpName(newest);
  status->set_operation(name == nullptr ? "" : name);
}

}  // namespace

void FillJobStatus(const JobState& state, int64_t now_ns, v1::JobStatus* status) {
  status->set_name(state.name);
  status->set_processes(static_cast<int32_t>(state.processes.size()));
  const auto ended = std::count_if(state.processes.begin(), state.processes.end(), &Ended);
  status->set_processes_alive(static_cast<int32_t>(state.processes.size()) -
                              static_cast<int32_t>(ended));
  status->set_state(status->processes_alive() == 0 ? "ended" : "running");
  std::set<std::string> hosts;
  for (const Process& process : state.processes) hosts.insert(process.host);
  for (const std::string& host : hosts) status->add_hosts(host);
  for (const auto& [id, comm] : state.communicators) {
    FillCommunicator(comm, now_ns, status->add_communicators());
  }
}

}  // namespace rollcall
