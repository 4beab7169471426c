// The daemon's part in stacks: asking agents for them, for incidents and for people, and putting
// what comes where it belongs.
#include <algorithm>
#include <chrono>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/model/progress.h"
#include "daemon/report/stack_merge.h"
#include "daemon/server/daemon.h"
#include "daemon/server/stack_motion.h"
#include "daemon/server/start_watch.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {
namespace {

constexpr size_t kSamplesKept = 2;     // of one process's stacks, in an incident
constexpr size_t kRequestsKept = 200;  // older ones are not answered any more
constexpr std::chrono::seconds kStacksPatience{15};

// The newest samples of each process; an older one than those gives way.
void AddStack(v1::Incident* incident, const v1::ProcessStack& stack) {
  auto* stacks = incident->mutable_stacks();
  const auto same = [&stack](const v1::ProcessStack& other) {
    return other.pid() == stack.pid() && other.host() == stack.host();
  };
  const auto count = static_cast<size_t>(std::count_if(stacks->begin(), stacks->end(), same));
  if (count >= kSamplesKept) {
    stacks->erase(std::find_if(stacks->begin(), stacks->end(), same));
  }
  *stacks->Add() = stack;
  std::stable_sort(stacks->begin(), stacks->end(),
                   [](const v1::ProcessStack& a, const v1::ProcessStack& b) {
                     return std::make_tuple(!a.culprit(), a.rank(), a.host(), a.pid()) <
                            std::make_tuple(!b.culprit(), b.rank(), b.host(), b.pid());
                   });
}

// What the stack shows, against the newest one of the process that is there already.
Motion MotionSince(const v1::Incident& incident, const v1::ProcessStack& stack) {
  Motion motion = Motion::kUnknown;
  for (const v1::ProcessStack& other : incident.stacks()) {
    if (other.pid() != stack.pid() || other.host() != stack.host()) continue;
    motion = MotionBetween(other, stack);
  }
  return motion;
}

std::string Choices(const std::vector<std::string>& names) {
  return names.empty() ? "it knows none" : absl::StrCat("it knows ", absl::StrJoin(names, ", "));
}

// Through whom the process's stacks are taken: "" where nobody speaks for it.
std::string AgentIdOf(const JobState& state, int32_t process) {
  const AgentState* agent = AgentOf(state, process);
  return agent == nullptr ? "" : agent->id;
}

template <typename Repeated, typename Value>
bool AllOrAmong(const Repeated& wanted, const Value& value) {
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), value) != wanted.end();
}

}  // namespace

// The newest sample of each process, and those that were merged before.
v1::StackTree Daemon::MergedStacks(const v1::Incident& incident, const StackTree& rest) {
  std::map<std::pair<std::string, int32_t>, const v1::ProcessStack*> newest;
  for (const v1::ProcessStack& stack : incident.stacks()) {
    if (!stack.threads().empty()) newest[{stack.host(), stack.pid()}] = &stack;
  }
  StackTree tree = rest;
  for (const auto& [process, stack] : newest) AddToTree(*stack, stack->rank(), &tree);
  return ToProto(tree);
}

void Daemon::AskForStacks(const JobState& state, const IncidentEvent& event) {
  std::map<std::string, v1::DaemonMessage> messages;  // by agent
  const bool rest = event.kind == IncidentEvent::Kind::kTakeStacksOfRest;
  StackRequest request = {state.name, event.incident.id, rest, {}};
  const auto asked = [&](int32_t process) -> Asked& {
    const Process& known = state.processes[static_cast<size_t>(process)];
    Asked& entry = request.asked[{known.host, known.pid}];
    entry.process = process;
    entry.rank = known.global_rank;
    entry.agent = AgentIdOf(state, process);
    return entry;
  };
  for (const int32_t process : event.take_stacks_of) asked(process);
  for (const Verdict& verdict : event.incident.verdicts) {
    if (rest) break;
    const size_t waiting = std::min(verdict.waiting_ranks.size(), verdict.waiting_processes.size());
    for (size_t i = 0; i < waiting; ++i) {
      if (ProcessOf(state, verdict.waiting_processes[i]) == nullptr) continue;
      asked(verdict.waiting_processes[i]).rank = verdict.waiting_ranks[i];
    }
    for (const Culprit& culprit : verdict.culprits) {
      if (ProcessOf(state, culprit.process) == nullptr) continue;
      Asked& entry = asked(culprit.process);
      entry.rank = culprit.rank;
      entry.culprit = true;
    }
  }
  for (const int32_t index : event.take_stacks_of) {
    const Process& process = state.processes[static_cast<size_t>(index)];
    v1::TakeStacks* take = messages[AgentIdOf(state, index)].mutable_take_stacks();
    take->set_request(next_request_);
    v1::ProcessRef* wanted = take->add_processes();
    wanted->set_pid(process.pid);
    wanted->set_start_time(process.start_time);
  }
  stack_requests_[next_request_++] = std::move(request);
  while (stack_requests_.size() > kRequestsKept) stack_requests_.erase(stack_requests_.begin());
  for (const auto& [agent, message] : messages) agents_->Send(agent, message);
}

void Daemon::AskAtStart(const JobState& state, JobWatch* watch, int64_t now_ns) {
  IncidentEvent look;
  look.take_stacks_of = watch->start.Next(state, now_ns, options_.limits);
  if (!look.take_stacks_of.empty()) AskForStacks(state, look);
}

absl::Status Daemon::TakeStacks(const v1::TakeStacksRequest& request,
                                const std::function<bool(const v1::ProcessStack&)>& on_stack) {
  std::map<std::string, v1::DaemonMessage> messages;  // by agent
  std::map<std::string, std::vector<StackCalls::Process>> asked;  // likewise
  std::map<StackCalls::Process, int32_t> ranks;
  uint64_t number = 0;
  {
    const absl::MutexLock lock(&mutex_);
    number = next_request_++;
  }
  const std::vector<std::string> jobs = store_.JobNames();
  if (std::find(jobs.begin(), jobs.end(), request.job()) == jobs.end()) {
    return absl::NotFoundError(
        absl::StrCat("the daemon knows no job ", request.job(), "; ", Choices(jobs)));
  }
  store_.Read(request.job(), [&](const JobState& state) {
    for (size_t i = 0; i < state.processes.size(); ++i) {
      const Process& process = state.processes[i];
      if (HowProcessEnded(state, static_cast<int32_t>(i)) != Gone::kNo) continue;
      if (!AllOrAmong(request.ranks(), process.global_rank) ||
          !AllOrAmong(request.hosts(), process.host)) {
        continue;
      }
      ranks[{process.host, process.pid}] = process.global_rank;
      const std::string agent = AgentIdOf(state, static_cast<int32_t>(i));
      asked[agent].push_back({process.host, process.pid});
      v1::TakeStacks* take = messages[agent].mutable_take_stacks();
      take->set_request(number);
      v1::ProcessRef* wanted = take->add_processes();
      wanted->set_pid(process.pid);
      wanted->set_start_time(process.start_time);
    }
  });
  if (ranks.empty()) {
    return absl::NotFoundError(
        absl::StrCat("job ", request.job(), " has no living process of these ranks and hosts"));
  }
  stack_calls_.Begin(number, std::move(ranks));
  for (const auto& [agent, message] : messages) {
    if (!agents_->Send(agent, message)) {
      stack_calls_.GiveUp(number, asked[agent], "the agent of its host is not connected");
    }
  }
  const StackCalls::Deadline deadline = std::chrono::steady_clock::now() + kStacksPatience;
  while (const auto stack = stack_calls_.Next(number, deadline)) {
    if (on_stack(*stack)) continue;
    stack_calls_.End(number);
    break;
  }
  return absl::OkStatus();
}

void Daemon::OnStack(const AgentName& agent, const v1::StackReply& reply) {
  v1::ProcessStack stack = reply.stack();
  stack.set_host(agent.host);
  std::string job;
  int32_t process = -1;
  Motion motion = Motion::kUnknown;
  {
    if (stack_calls_.Deliver(reply.request(), stack)) return;
    const absl::MutexLock lock(&mutex_);
    const auto request = stack_requests_.find(reply.request());
    if (request == stack_requests_.end()) return;
    job = request->second.job;
    const auto watch = jobs_.find(job);
    if (watch == jobs_.end()) return;
    const auto asked = request->second.asked.find({agent.host, stack.pid()});
    if (asked == request->second.asked.end() || asked->second.agent != agent.id) return;
    process = asked->second.process;
    stack.set_rank(asked->second.rank);
    stack.set_culprit(asked->second.culprit);
    for (Record& record : watch->second.incidents) {
      if (record.incident.id() != request->second.incident) continue;
      record.dirty = true;
      --record.stacks_open;
      if (request->second.rest) {
        AddToTree(stack, stack.rank(), &record.rest);
        return;
      }
      motion = MotionSince(record.incident, stack);
      AddStack(&record.incident, stack);
    }
  }
  store_.SetStacks(job, process,
                   {motion, WordsOf(stack), WaitsForOthers(stack), timeline_.Now()});
}

}  // namespace rollcall
