// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/network_evidence.h"

#include <algorithm>

#include "daemon/diagnosis/network/network_verdict.h"
#include "daemon/model/progress.h"

namespace rollcall {
namespace {

constexpr size_t kMostStalled = 64;

bool IsStalled(const Verdict& verdict) {
  return verdict.cause == Cause::kStalledInFlight && verdict.communicator != 0 &&
         verdict.communicator_kind == CommKind::kNccl;
}

// What a process reports of a rank that is another process's is not evidence.
void AddSample(const Communicator& comm, const NetworkSample& sample,
               std::vector<NetworkSample>* samples) {
  if (sample.communicator != comm.id) return;
  const auto member = comm.members.find(sample.rank);
  if (member == comm.members.end() || member->second.process != sample.process) return;
  samples->push_back(sample);
  std::vector<NetworkState>* states = &samples->back().states;
  const auto is_no_peer = [&](const NetworkState& state) {
    return state.peer >= comm.size || state.peer == sample.rank;
  };
  states->erase(std::remove_if(states->begin(), states->end(), is_no_peer), states->end());
}

}  // namespace

std::vector<uint64_t> StalledCommunicators(const std::vector<Verdict>& verdicts) {
  std::vector<uint64_t> stalled;
  for (const Verdict& verdict : verdicts) {
    const bool is_known =
        std::find(stalled.begin(), stalled.end(), verdict.communicator) != stalled.end();
    if (IsStalled(verdict) && !is_known && stalled.size() < kMostStalled) {
      stalled.push_back(verdict.communicator);
    }
  }
  return stalled;
}

std::vector<NetworkSample> NetworkSamplesOf(const JobState& job, const Verdict& verdict) {
  std::vector<NetworkSample> samples;
  const auto comm = job.communicators.find(verdict.communicator);
  if (comm == job.communicators.end()) return samples;
  for (const auto& [rank, member] : comm->second.members) {
    const Process* process = FindProcess(job, member.process);
    if (process == nullptr || process->network == nullptr) continue;
    if (process->network_ns < verdict.since_ns) continue;
    // A process with several ranks has them in one list.
    for (const NetworkSample& sample : *process->network) {
      if (sample.rank == rank) AddSample(comm->second, sample, &samples);
    }
  }
  return samples;
}

void AddNetwork(const JobState& job, Verdict* verdict) {
  if (!IsStalled(*verdict)) return;
  const std::vector<NetworkSample> samples = NetworkSamplesOf(job, *verdict);
  if (samples.empty()) return;
  ApplyNetwork(job, samples, verdict);
  if (!job.offline || verdict->network.fault == NetworkFault::kNone) return;
  verdict->certainty = Certainty::kPossible;
  verdict->missing_evidence.push_back(
      "for how long the transfers over the network have stood still: segments show the last moment");
}

}  // namespace rollcall
