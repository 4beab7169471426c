// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/status_view.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "daemon/model/progress.h"
#include "daemon/report/incident_proto.h"
#include "daemon/report/public_ranks.h"
#include "daemon/words/communicator_names.h"
#include "proto/timestamps.h"

namespace rollcall {
namespace {

constexpr int kMaxLaggards = 8;

// Whether the job still needs the member.
bool TakesPart(const JobState& job, const Member& member) {
  return HowGone(job, member) != Gone::kLeft;
}

}  // namespace

int64_t WaitingSince(const Member& member) {
  int64_t since = 0;
  for (const int64_t candidate :
       {member.waiting_since_ns, member.host_blocked_since_ns, member.host_waits_since_ns}) {
    if (candidate != 0 && (since == 0 || candidate < since)) since = candidate;
  }
  return since;
}

void FillCommunicatorStatus(const JobState& job, const Communicator& comm, int64_t now_ns,
                            v1::CommunicatorStatus* status) {
  status->set_id(absl::StrCat(absl::Hex(comm.id, absl::kZeroPad16)));
  status->set_name(Utf8(NameForPeople(job, comm)));
  status->set_size(comm.size);
  status->set_members(static_cast<int32_t>(comm.members.size()));
  uint64_t least = UINT64_MAX, most = 0;
  int64_t longest_ns = 0;
  int waiting = 0;
  const CallRecord* newest = nullptr;
  for (const auto& [rank, member] : comm.members) {
    least = std::min(least, member.entered);
    if (member.entered >= most && !member.records.empty()) newest = &member.records.back();
    most = std::max(most, member.entered);
    const int64_t since = WaitingSince(member);
    if (since == 0) continue;
    ++waiting;
    longest_ns = std::max(longest_ns, now_ns - since);
  }
  for (const auto& [rank, member] : comm.members) {
    if (member.entered > least || least == most || !TakesPart(job, member)) continue;
    status->set_laggards_total(status->laggards_total() + 1);
    if (status->laggards_size() < kMaxLaggards) {
      status->add_laggards(PublicRank(job, member.process, rank));
    }
  }
  status->set_position_min(comm.members.empty() ? 0 : static_cast<double>(least));
  status->set_position_max(static_cast<double>(most));
  status->set_waiting(waiting);
  status->set_waited_seconds(static_cast<double>(longest_ns) / 1e9);
  if (newest == nullptr) return;
  const char* name = OpName(newest->args.op);
  status->set_operation(name == nullptr ? "" : name);
  *status->mutable_call() = ToProto(newest->args, newest->position);
}

namespace {

// Returns the time when the first communicator was created, or 0.
int64_t Began(const JobState& state) {
  int64_t began = 0;
  for (const auto& [id, comm] : state.communicators) {
    for (const auto& [rank, member] : comm.members) {
      if (member.init_entered_ns != 0 && (began == 0 || member.init_entered_ns < began)) {
        began = member.init_entered_ns;
      }
    }
  }
  return began;
}

// Fills what the ends of its processes show.
void FillEnds(const JobState& state, int64_t to_wall_ns, v1::JobStatus* status) {
  int32_t ended = 0, died = 0, exited = 0;
  int64_t last_ns = 0;
  for (const Process& process : state.processes) {
    ended += HasEnded(process);
    died += process.liveness == Liveness::kDied;
    exited += process.liveness == Liveness::kExited;
    last_ns = std::max(last_ns, process.ended_ns);
  }
  const auto all = static_cast<int32_t>(state.processes.size());
  status->set_processes_alive(all - ended);
  status->set_processes_died(died);
  status->set_processes_exited(exited);
  status->set_state(ended == all ? "ended" : "running");
  if (ended < all || last_ns == 0) return;
  *status->mutable_ended_at() = ToTimestamp(last_ns + to_wall_ns);
}

// Each member of a communicator has one device.
int32_t GpusOf(const JobState& state) {
  const auto largest = std::max_element(state.communicators.begin(), state.communicators.end(),
                                        [](const auto& a, const auto& b) {
                                          return a.second.members.size() < b.second.members.size();
                                        });
  if (largest == state.communicators.end()) return 0;
  const auto& members = largest->second.members;
  return static_cast<int32_t>(std::count_if(
      members.begin(), members.end(), [](const auto& one) { return one.second.device >= 0; }));
}

}  // namespace

void FillJobStatus(const JobState& state, int64_t now_ns, bool with_communicators,
                   v1::JobStatus* status, int64_t to_wall_ns) {
  status->set_name(Utf8(state.key.job));
  status->set_tenant(Utf8(state.key.tenant));
  status->set_attempt(state.key.attempt);
  status->set_processes(static_cast<int32_t>(state.processes.size()));
  status->set_ranks(PublicRanks(state).count());
  status->set_gpus(GpusOf(state));
  FillEnds(state, to_wall_ns, status);
  std::set<std::string> hosts;
  for (const Process& process : state.processes) hosts.insert(process.host);
  for (const std::string& host : hosts) status->add_hosts(Utf8(host));
  if (state.world_restarts > 0) {
    status->add_warnings(absl::StrCat(
        "the processes have created their world communicator again ", state.world_restarts,
        state.world_restarts == 1 ? " time" : " times", " after an abort"));
  }
  status->set_communicators_total(static_cast<int32_t>(state.communicators.size()));
  const int64_t began = Began(state);
  if (began != 0) {
    status->set_since(
        absl::FormatTime(absl::FromUnixNanos(began + to_wall_ns), absl::UTCTimeZone()));
  }
  if (!with_communicators) return;
  for (const auto& [id, comm] : state.communicators) {
    FillCommunicatorStatus(state, comm, now_ns, status->add_communicators());
  }
}

uint64_t CallsEntered(const JobState& state) {
  uint64_t calls = 0;
  for (const auto& [id, comm] : state.communicators) {
    for (const auto& [rank, member] : comm.members) calls += member.entered + member.p2p_entered;
  }
  return calls;
}

}  // namespace rollcall
