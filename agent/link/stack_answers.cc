// SPDX-License-Identifier: Apache-2.0
#include "agent/link/stack_answers.h"

#include <algorithm>
#include <utility>

#include "agent/link/network_samples.h"
#include "agent/processes/payer.h"

namespace rollcall {
namespace {

PendingRequest ToPending(uint64_t stream, const v1::TakeStacks& take) {
  PendingRequest request;
  request.stream = stream;
  request.request = take.request();
  request.processes = ProcessesIn(take.processes());
  request.children = take.children();
  request.only_network = take.only_network();
  const int most = std::min(take.network_of_size(), static_cast<int>(kMostNetworkComms));
  request.network_of.assign(take.network_of().begin(), take.network_of().begin() + most);
  return request;
}

}  // namespace

StackAnswers::StackAnswers(StackServiceOptions options, const ServedSegments* served,
                           const UnrecordedList* listed, UplinkInbox* inbox)
    : served_(served),
      listed_(listed),
      inbox_(inbox),
      proc_root_(options.proc_root),
      service_(WithNeighbours(std::move(options)), [served, listed](ProcessId process) {
        return served->Has(process) || listed->Has(process);
      }) {}

StackServiceOptions StackAnswers::WithNeighbours(StackServiceOptions options) {
  options.neighbours = [this] { return Neighbours(); };
  options.segment_of = [served = served_](ProcessId process) { return served->Of(process); };
  return options;
}

// Ranks without the library are read only for one of them: a look at a recorded job has its own.
std::vector<pid_t> StackAnswers::Neighbours() const {
  std::vector<pid_t> pids = served_->Pids();
  if (!listed_->Has(sampled_)) return pids;
  const std::vector<pid_t> listed = listed_->Pids();
  pids.insert(pids.end(), listed.begin(), listed.end());
  return pids;
}

void StackAnswers::Start() {
  thread_ = std::thread([this] { Run(); });
}

void StackAnswers::Cancel() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  service_.Cancel();
}

void StackAnswers::Stop() {
  if (thread_.joinable()) thread_.join();
}

void StackAnswers::Run() {
  while (true) {
    PendingRequest request;
    {
      const MutexLock lock(mutex_);
      while (!stopping_ && queue_.empty()) changed_.Wait(mutex_);
      if (stopping_) return;
      request = queue_.Pop();
    }
    Answer(request);
  }
}

void StackAnswers::Answer(const PendingRequest& request) {
  for (const ProcessId process : request.processes) {
    sampled_ = process;
    v1::ProcessStack stack = request.only_network
                                 ? service_.TransfersOf(process, request.network_of)
                                 : service_.Take(process, request.children, request.network_of);
    std::optional<v1::Evidence> evidence;
    if (listed_->Has(process)) evidence = service_.EvidenceOf(process);
    if (!Send(request, process, std::move(stack), evidence)) return;
  }
}

void StackAnswers::TakeIn(uint64_t stream, const v1::TakeStacks& take) {
  PendingRequest request = ToPending(stream, take);
  if (!request.processes.empty()) {
    request.owner = PayerOfReads(proc_root_, request.processes.front().pid);
  }
  {
    const MutexLock lock(mutex_);
    if (queue_.Push(&request)) {
      changed_.NotifyAll();
      return;
    }
  }
  for (const ProcessId process : request.processes) {
    v1::ProcessStack none = service_.Refuse(
        process, "the agent of this host has too many requests for stacks: ask again later");
    if (!Send(request, process, std::move(none))) return;
  }
}

void StackAnswers::DropWaiting() {
  const MutexLock lock(mutex_);
  queue_.Clear();
}

bool StackAnswers::Send(const PendingRequest& request, ProcessId process, v1::ProcessStack stack,
                        const std::optional<v1::Evidence>& evidence) {
  v1::AgentMessage answer;
  v1::StackReply* reply = answer.mutable_stacks();
  reply->set_request(request.request);
  reply->set_start_time(process.start_time);
  *reply->mutable_stack() = std::move(stack);
  if (evidence.has_value()) *reply->mutable_evidence() = *evidence;
  return inbox_->Put(request.stream, std::move(answer));
}

}  // namespace rollcall
