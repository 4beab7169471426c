// SPDX-License-Identifier: Apache-2.0
#include "agent/link/stack_queue.h"

#include <utility>

namespace rollcall {

bool StackQueue::Push(PendingRequest* request) {
  const size_t processes = request->processes.size();
  if (requests_.size() >= kMostRequests || processes > kMostProcesses - processes_) return false;
  processes_ += processes;
  requests_.push_back(std::move(*request));
  return true;
}

PendingRequest StackQueue::Pop() {
  PendingRequest request = std::move(requests_.front());
  requests_.pop_front();
  processes_ -= request.processes.size();
  return request;
}

void StackQueue::Clear() {
  requests_.clear();
  processes_ = 0;
}

}  // namespace rollcall
