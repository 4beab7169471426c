// SPDX-License-Identifier: Apache-2.0
#include "agent/link/stack_queue.h"

#include <utility>

namespace rollcall {

bool StackQueue::Push(PendingRequest* request) {
  const size_t processes = request->processes.size();
  if (requests_ >= kMostRequests || processes > kMostProcesses - processes_) return false;
  ++requests_;
  processes_ += processes;
  const int64_t owner = request->owner;
  waiting_[owner].push_back({std::move(*request)});
  return true;
}

PendingRequest StackQueue::Pop() {
  auto turn = waiting_.upper_bound(last_owner_);
  if (turn == waiting_.end()) turn = waiting_.begin();
  last_owner_ = turn->first;
  Waiting& first = turn->second.front();
  PendingRequest one;
  one.stream = first.request.stream;
  one.request = first.request.request;
  one.owner = first.request.owner;
  one.children = first.request.children;
  const std::vector<ProcessId>& processes = first.request.processes;
  if (!processes.empty()) {
    one.processes.push_back(processes[first.taken++]);
    --processes_;
  }
  if (first.taken < processes.size()) return one;
  --requests_;
  turn->second.pop_front();
  if (turn->second.empty()) waiting_.erase(turn);
  return one;
}

void StackQueue::Clear() {
  waiting_.clear();
  requests_ = 0;
  processes_ = 0;
}

}  // namespace rollcall
