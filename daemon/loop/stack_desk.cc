// SPDX-License-Identifier: Apache-2.0
#include "daemon/loop/stack_desk.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/agents/children_at_work.h"
#include "daemon/agents/network_samples.h"
#include "daemon/agents/stack_limits.h"
#include "daemon/agents/stack_motion.h"
#include "daemon/agents/standing_sample.h"
#include "daemon/loop/start_watch.h"
#include "daemon/model/calling_threads.h"
#include "daemon/model/progress.h"
#include "daemon/report/keepers.h"
#include "daemon/report/program_line.h"
#include "rollcall/v1/agent.pb.h"
#include "rollcall/v1/query.pb.h"

namespace rollcall {
namespace {

constexpr std::chrono::seconds kReplyTimeout{15};  // for people
constexpr char kNotConnected[] = "the agent of its host is not connected";

// Returns the messages by agent id.
std::map<std::string, v1::DaemonMessage> MessagesFor(uint64_t number, const StackRequest& request) {
  std::map<std::string, v1::DaemonMessage> messages;
  for (const RequestedProcess& process : request.processes) {
    v1::TakeStacks* take = messages[process.agent].mutable_take_stacks();
    take->set_request(number);
    take->set_children(request.children);
    take->mutable_network_of()->Assign(request.network_of.begin(), request.network_of.end());
    take->set_only_network(request.only_network);
    v1::ProcessRef* wanted = take->add_processes();
    wanted->set_pid(process.pid);
    wanted->set_start_time(process.start_time);
  }
  return messages;
}

}  // namespace

StackDesk::StackDesk(Send send, JobStore* store, IncidentBook* incidents, Timeline* timeline,
                     DaemonCounters* counters)
    : send_(std::move(send)),
      store_(store),
      incidents_(incidents),
      timeline_(timeline),
      counters_(counters) {}

void StackDesk::Request(const StackRequest& wanted) {
  StackRequest request = wanted;
  request.asked_ns = timeline_->Now();
  const StackRequests::Opened opened = requests_.Open(request);
  if (opened.has_removed && counters_ != nullptr) counters_->CountDropped(Dropped::kStacks, 1);
  SendToAgents(opened.number, request);
}

void StackDesk::SendToAgents(uint64_t number, const StackRequest& request) {
  std::set<std::string> unreachable;
  for (const auto& [agent, message] : MessagesFor(number, request)) {
    if (!send_(agent, message)) unreachable.insert(agent);
  }
  if (unreachable.empty()) return;
  for (const StackResult& result : requests_.Fail(number, unreachable, kNotConnected)) {
    Deliver(result);
  }
}

// A sample shows what the threads do, but not which of them makes the calls.
void StackDesk::NameCallingThreads(StackResult* result) {
  result->stack.clear_calling_tids();
  store_->Read(result->job, [&](const JobState& state) {
    const Process* process = FindProcess(state, result->process);
    if (process == nullptr) return;
    for (const uint32_t tid : CallingTids(*process)) {
      result->stack.add_calling_tids(static_cast<int32_t>(tid));
    }
  });
}

// A rank may have started others: they are not children that it waits for.
void StackDesk::RemoveOtherRanks(StackResult* result) {
  if (result->stack.children().empty()) return;
  std::set<int32_t> children;
  for (const v1::ChildProcess& child : result->stack.children()) children.insert(child.pid());
  std::set<int32_t> ranks;
  store_->Read(result->job, [&](const JobState& state) {
    const Process* process = FindProcess(state, result->process);
    if (process == nullptr) return;
    for (const Process& other : state.processes) {
      if (children.count(other.pid) == 0) continue;
      const bool is_rank = other.has_met || !other.blocked.empty();
      const bool is_other = other.host == process->host && other.pid != process->pid;
      if (is_rank && is_other && !HasEnded(other)) ranks.insert(other.pid);
    }
  });
  RemoveRanks(ranks, &result->stack);
}

// A sample of the watch on jobs that stand still, with those before it.
std::shared_ptr<const Standing> StackDesk::StandingWith(const StackResult& result,
                                                        int64_t now_ns) const {
  std::shared_ptr<const Standing> before;
  store_->Read(result.job, [&](const JobState& state) {
    const Process* process = FindProcess(state, result.process);
    if (process != nullptr) before = process->standing;
  });
  return AddToRow(before, result.stack, now_ns);
}

// Of every process, also of those that the incident does not name: the way over the transfers leads
// through all ranks of the call. They are as old as the request, as stacks are:
// JobModel::SetStacks().
void StackDesk::KeepNetwork(const StackResult& result) {
  if (result.stack.network().empty()) return;
  const int64_t read_ns = result.asked_ns != 0 ? result.asked_ns : timeline_->Now();
  auto samples = ReadNetworkSamples(result.stack, result.network_of, result.process, read_ns);
  store_->Change(result.job, [&](JobModel* model) {
    model->SetNetwork(result.process, std::move(samples), read_ns);
  });
}

// Passes the result to the incident that requested it, if any, and to the job's state.
void StackDesk::Deliver(const StackResult& result) {
  if (result.only_network) {
    KeepNetwork(result);
    return;
  }
  StackChange change;
  if (!result.incident.empty()) {
    const auto judged = incidents_->AddStack(result);
    if (!judged.has_value()) return;
    change = *judged;
  }
  KeepNetwork(result);
  const bool waits_for_others = WaitsForOthers(result.stack);
  // The many that the incident does not name are a picture for people, but for those that wait for
  // others outside NCCL: the wait graph follows these.
  if (!result.is_reply || (result.is_rest && !waits_for_others)) return;
  if (ShowsNothing(result.stack)) return;
  if (change.children_at_work.has_value()) {
    KeepAwaited(result.stack, &*change.children_at_work);
    if (waits_for_others) change.children_at_work->clear();
  }
  const int64_t now_ns = timeline_->Now();
  const StackFacts facts = {change.motion,
                            FunctionNames(result.stack),
                            FindPlace(result.stack),
                            waits_for_others,
                            now_ns,
                            FindAwaitedTids(result.stack),
                            FindThreadPlaces(result.stack),
                            FindKeepers(result.stack),
                            std::move(change.children_at_work),
                            waits_for_others ? 0 : change.receives,
                            result.children ? StandingWith(result, now_ns) : nullptr,
                            result.asked_ns};
  store_->Change(result.job, [&](JobModel* model) { model->SetStacks(result.process, facts); });
}

absl::Status StackDesk::Stream(const JobKey& job, const v1::TakeStacksRequest& request,
                               const std::function<bool(const v1::ProcessStack&)>& on_stack) {
  StackRequest wanted;
  store_->Read(job, [&](const JobState& state) { wanted = MakeStackRequest(state, request); });
  if (wanted.processes.empty()) {
    return absl::NotFoundError(
        absl::StrCat("job ", ToText(job), " has no living process of these ranks and hosts"));
  }
  const uint64_t number = requests_.OpenForReader(wanted);
  SendToAgents(number, wanted);
  const StackRequests::Deadline deadline = std::chrono::steady_clock::now() + kReplyTimeout;
  while (const auto stack = requests_.Next(number, deadline)) {
    if (on_stack(*stack)) continue;
    requests_.Drop(number);
    break;
  }
  return absl::OkStatus();
}

void StackDesk::OnStackReply(const AgentName& agent, const v1::StackReply& reply) {
  v1::ProcessStack stack = reply.stack();
  if (LimitStack(&stack) && counters_ != nullptr) counters_->CountDropped(Dropped::kStacks, 1);
  auto result = requests_.AddReply(reply.request(), agent, std::move(stack));
  if (!result.has_value()) return;
  NameCallingThreads(&*result);
  RemoveOtherRanks(&*result);
  Deliver(*result);
}

}  // namespace rollcall
