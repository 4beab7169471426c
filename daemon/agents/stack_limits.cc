// SPDX-License-Identifier: Apache-2.0
#include "daemon/agents/stack_limits.h"

#include "rollcall/v1/incident.pb.h"

namespace rollcall {
namespace {

template <typename Repeated>
void KeepFirst(int most, Repeated* list) {
  if (list->size() > most) list->DeleteSubrange(most, list->size() - most);
}

void LimitPids(v1::OtherEnd* end) {
  if (end->pids_size() > limits::kPidsOfOtherEnd)
    end->mutable_pids()->Truncate(limits::kPidsOfOtherEnd);
  KeepFirst(end->pids_size(), end->mutable_names());
  KeepFirst(limits::kSocketsOfOtherEnd, end->mutable_sockets());
}

void LimitChild(bool has_threads, v1::ChildProcess* child) {
  KeepFirst(has_threads ? limits::kThreadsOfChild : 0, child->mutable_threads());
  for (v1::ThreadStack& thread : *child->mutable_threads()) {
    KeepFirst(limits::kFramesOfChild, thread.mutable_frames());
    if (thread.has_other_end()) LimitPids(thread.mutable_other_end());
  }
}

}  // namespace

void LimitStack(v1::ProcessStack* stack) {
  KeepFirst(limits::kChildren, stack->mutable_children());
  KeepFirst(limits::kFileLocks, stack->mutable_locks());
  for (v1::ThreadStack& thread : *stack->mutable_threads()) {
    if (thread.has_other_end()) LimitPids(thread.mutable_other_end());
  }
  int sampled = 0;
  for (v1::ChildProcess& child : *stack->mutable_children()) {
    if (!child.threads().empty()) ++sampled;
    LimitChild(sampled <= limits::kSampledChildren, &child);
  }
}

}  // namespace rollcall
