// SPDX-License-Identifier: Apache-2.0
#include "agent/link/stack_queue.h"

#include <algorithm>
#include <utility>

namespace rollcall {

namespace {

constexpr size_t kShare = 3;  // times what is left for others

// Whether one who has `own` of the `taken` places may take `more`.
bool IsShare(size_t own, size_t more, size_t taken, size_t most) {
  return more <= most - taken && own + more <= kShare * (most - taken - more);
}

}  // namespace

bool StackQueue::HasRoomFor(const PendingRequest& request) const {
  const auto line = waiting_.find(request.owner);
  const bool is_new = line == waiting_.end();
  return IsShare(is_new ? 0 : line->second.requests.size(), 1, requests_, kMostRequests) &&
         IsShare(is_new ? 0 : line->second.processes, request.processes.size(), processes_,
                 kMostProcesses);
}

bool StackQueue::Push(PendingRequest* request) {
  if (!HasRoomFor(*request)) return false;
  ++requests_;
  processes_ += request->processes.size();
  Line& line = waiting_[request->owner];
  line.processes += request->processes.size();
  line.requests.push_back({std::move(*request)});
  return true;
}

PendingRequest StackQueue::Pop() {
  auto turn = waiting_.upper_bound(last_owner_);
  if (turn == waiting_.end()) turn = waiting_.begin();
  last_owner_ = turn->first;
  Line& line = turn->second;
  Waiting& first = line.requests.front();
  PendingRequest one = {PendingQuestion(first.request), {}};
  const std::vector<ProcessId>& processes = first.request.processes;
  if (!processes.empty()) {
    one.processes.push_back(processes[first.taken++]);
    --processes_;
    --line.processes;
  }
  if (first.taken < processes.size()) return one;
  --requests_;
  line.requests.pop_front();
  if (line.requests.empty()) waiting_.erase(turn);
  return one;
}

void StackQueue::Clear() {
  waiting_.clear();
  requests_ = 0;
  processes_ = 0;
}

std::vector<ProcessId> ProcessesIn(const google::protobuf::RepeatedPtrField<v1::ProcessRef>& refs) {
  const int most = std::min<int>(refs.size(), StackQueue::kMostProcesses + 1);
  std::vector<ProcessId> processes;
  for (int i = 0; i < most; ++i) processes.push_back({refs[i].pid(), refs[i].start_time()});
  return processes;
}

}  // namespace rollcall
