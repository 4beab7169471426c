// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/stack_desk.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/server/stack_motion.h"
#include "daemon/server/start_watch.h"
#include "rollcall/v1/agent.pb.h"
#include "rollcall/v1/query.pb.h"

namespace rollcall {
namespace {

constexpr std::chrono::seconds kPatience{15};  // of people
constexpr char kNotConnected[] = "the agent of its host is not connected";

absl::Status NoSuchJob(const std::string& job, const std::vector<std::string>& jobs) {
  return absl::NotFoundError(absl::StrCat(
      "the daemon knows no job ", job, "; ",
      jobs.empty() ? "it knows none" : absl::StrCat("it knows ", absl::StrJoin(jobs, ", "))));
}

// By agent.
std::map<std::string, v1::DaemonMessage> MessagesFor(uint64_t number, const StackRequest& request) {
  std::map<std::string, v1::DaemonMessage> messages;
  for (const AskedProcess& process : request.processes) {
    v1::TakeStacks* take = messages[process.agent].mutable_take_stacks();
    take->set_request(number);
    v1::ProcessRef* wanted = take->add_processes();
    wanted->set_pid(process.pid);
    wanted->set_start_time(process.start_time);
  }
  return messages;
}

}  // namespace

StackDesk::StackDesk(Send send, JobStore* store, IncidentBook* incidents, Timeline* timeline)
    : send_(std::move(send)), store_(store), incidents_(incidents), timeline_(timeline) {}

void StackDesk::Ask(const StackRequest& request) {
  SendToAgents(requests_.Open(request), request);
}

void StackDesk::SendToAgents(uint64_t number, const StackRequest& request) {
  std::set<std::string> unreachable;
  for (const auto& [agent, message] : MessagesFor(number, request)) {
    if (!send_(agent, message)) unreachable.insert(agent);
  }
  if (unreachable.empty()) return;
  for (const StackAnswer& answer : requests_.GiveUp(number, unreachable, kNotConnected)) {
    HandOver(answer);
  }
}

// To the incident that has asked, if one has, and to the job's state.
void StackDesk::HandOver(const StackAnswer& answer) {
  Motion motion = Motion::kUnknown;
  if (!answer.incident.empty()) {
    const auto judged = incidents_->AddStack(answer);
    if (!judged.has_value()) return;
    motion = *judged;
  }
  if (!answer.has_come) return;
  store_->SetStacks(
      answer.job, answer.process,
      {motion, WordsOf(answer.stack), WaitsForOthers(answer.stack), timeline_->Now()});
}

absl::Status StackDesk::Stream(const v1::TakeStacksRequest& request,
                               const std::function<bool(const v1::ProcessStack&)>& on_stack) {
  const std::vector<std::string> jobs = store_->JobNames();
  if (std::find(jobs.begin(), jobs.end(), request.job()) == jobs.end()) {
    return NoSuchJob(request.job(), jobs);
  }
  StackRequest wanted;
  store_->Read(request.job(), [&](const JobState& state) { wanted = RequestFor(state, request); });
  if (wanted.processes.empty()) {
    return absl::NotFoundError(
        absl::StrCat("job ", request.job(), " has no living process of these ranks and hosts"));
  }
  const uint64_t number = requests_.OpenForReader(wanted);
  SendToAgents(number, wanted);
  const StackRequests::Deadline deadline = std::chrono::steady_clock::now() + kPatience;
  while (const auto stack = requests_.Next(number, deadline)) {
    if (on_stack(*stack)) continue;
    requests_.Drop(number);
    break;
  }
  return absl::OkStatus();
}

void StackDesk::OnStack(const AgentName& agent, const v1::StackReply& reply) {
  const auto answer = requests_.Answer(reply.request(), agent, reply.stack());
  if (answer.has_value()) HandOver(*answer);
}

}  // namespace rollcall
