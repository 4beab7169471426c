// SPDX-License-Identifier: Apache-2.0
// What agents say about transfers over the network, up to the report: limits, the walk to the rank
// that holds a collective up, its words. The input is an Incident: stack n is the answer of process
// n, whose rank in the communicator is n; its `culprit` stands for an error of NCCL. The first
// verdict has the size of the communicator.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/access/clean_message.h"
#include "daemon/agents/network_samples.h"
#include "daemon/agents/stack_limits.h"
#include "daemon/diagnosis/network_evidence.h"
#include "daemon/model/job_state.h"
#include "daemon/report/incident_proto.h"
#include "daemon/report/network/network_lines.h"
#include "daemon/words/sentences.h"
#include "fuzz_target.h"
#include "proto_mutator.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {
namespace fuzz {
namespace {

constexpr uint64_t kCommunicator = 0xa91f;
constexpr uint64_t kPosition = 6;
constexpr int64_t kNowNs = 1'800'000'000'000'000'000;
constexpr int64_t kWaitsNs = 60'000'000'000;
constexpr int32_t kMostMembers = 64;

int32_t SizeIn(const v1::Incident& sent) {
  const int32_t size = sent.verdicts().empty() ? 0 : sent.verdicts(0).communicator().size();
  return std::clamp(size, 2, kMostMembers);
}

void CheckSamples(const std::vector<NetworkSample>& samples) {
  size_t states = 0;
  for (const NetworkSample& sample : samples) {
    Promise(sample.communicator == kCommunicator && sample.rank >= 0, "only what was asked for");
    states += sample.states.size();
    for (const NetworkState& state : sample.states) {
      Promise(state.peer >= 0 && state.channel >= 0, "a state has a peer and a channel");
      Promise(state.ended <= state.begun, "no more steps end than begin");
      Promise(static_cast<uint32_t>(state.wait) < kNetworkWaits, "a wait has a name");
      Promise(state.since_ns >= 0 && state.since_ns <= kNowNs, "a wait began in the past");
    }
  }
  Promise(samples.size() <= static_cast<size_t>(limits::kNetworks), "communicators have a limit");
  Promise(states <= static_cast<size_t>(limits::kNetworkStatesOfStack), "states have a limit");
}

void AddRank(int32_t rank, v1::ProcessStack stack, JobState* job) {
  LimitStack(&stack);
  Process process;
  process.host = stack.host();
  process.pid = 4000 + rank;
  process.global_rank = rank;
  process.has_segment = true;
  process.liveness = Liveness::kAlive;
  process.network_ns = kNowNs;
  auto samples = ReadNetworkSamples(stack, {kCommunicator}, rank, kNowNs);
  CheckSamples(samples);
  process.network = std::make_shared<const std::vector<NetworkSample>>(std::move(samples));
  job->processes.push_back(std::move(process));
  Member& member = job->communicators[kCommunicator].members[rank];
  member.process = rank;
  member.state = MemberState::kReady;
  member.entered = member.returned = kPosition + 1;
  member.async_error = stack.culprit() ? 6 : 0;
}

Verdict Stalled(const JobState& job, int32_t size) {
  Verdict verdict;
  verdict.cause = Cause::kStalledInFlight;
  verdict.certainty = Certainty::kCertain;
  verdict.communicator = kCommunicator;
  verdict.communicator_name = "dp";
  verdict.communicator_size = size;
  verdict.position = kPosition;
  verdict.call.op = Op::kAllReduce;
  verdict.since_ns = kNowNs - kWaitsNs;
  verdict.waited_ns = kWaitsNs;
  for (const auto& [rank, member] : job.communicators.at(kCommunicator).members) {
    verdict.waiting_ranks.push_back(rank);
    verdict.waiting_processes.push_back(member.process);
  }
  return verdict;
}

void CheckWalk(const JobState& job, int32_t size, const Verdict& verdict) {
  const NetworkWalk& walk = verdict.network;
  const v1::Verdict message = ToProto(verdict);
  if (walk.fault == NetworkFault::kNone) {
    Promise(!message.has_network() && NetworkLines(message).empty(),
            "who names nobody says nothing");
    return;
  }
  Promise(walk.culprit >= 0 && walk.culprit < size, "the culprit is a rank");
  Promise(walk.peer < size, "the peer is a rank, or nobody");
  Promise(0 < walk.agreeing && walk.agreeing <= walk.channels, "channels agree");
  Promise(!walk.hops.empty() && walk.hops.size() <= kMostNetworkHops, "a way has a limit");
  Promise(walk.hops.back().rank == walk.culprit, "a way ends at the culprit");
  Promise(!verdict.culprits.empty(), "somebody is accused");
  for (const Culprit& culprit : verdict.culprits) {
    Promise(culprit.rank >= 0 && culprit.rank < size, "who is accused is a rank");
  }
  const auto& members = job.communicators.at(kCommunicator).members;
  const bool has_error = std::any_of(members.begin(), members.end(), [](const auto& member) {
    return member.second.async_error != 0;
  });
  Promise(verdict.certainty != Certainty::kCertain || has_error, "states alone prove nothing");
  Promise(!NetworkLines(message).empty(), "a way has words");
  Promise(!WriteSummary(verdict).empty(), "a verdict has a sentence");
}

void Run(Input input) {
  const std::string_view bytes = input.TakeRest();
  v1::Incident sent;
  if (!sent.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  CleanStrings(static_cast<google::protobuf::Message*>(&sent));
  const int32_t size = SizeIn(sent);
  JobState job;
  Communicator& comm = job.communicators[kCommunicator];
  comm.id = kCommunicator;
  comm.name = "dp";
  comm.size = size;
  for (int32_t rank = 0; rank < std::min(size, sent.stacks_size()); ++rank) {
    AddRank(rank, sent.stacks(rank), &job);
  }
  Verdict verdict = Stalled(job, size);
  AddNetwork(job, &verdict);
  CheckWalk(job, size, verdict);
}

const Registered kTarget({"network", 8192, &Run, &MutateAs<v1::Incident>});

}  // namespace
}  // namespace fuzz
}  // namespace rollcall
