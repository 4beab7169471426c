// SPDX-License-Identifier: Apache-2.0
#include "daemon/agents/stack_limits.h"

#include <algorithm>

#include "rollcall/v1/incident.pb.h"

namespace rollcall {
namespace {

class Limiter {
 public:
  template <typename Repeated>
  void KeepFirst(int most, Repeated* list) {
    if (list->size() <= most) return;
    has_cut_ = true;
    list->erase(list->begin() + most, list->end());
  }

  void LimitOtherEnd(v1::ThreadStack* thread) {
    if (thread->has_other_end()) LimitEnd(thread->mutable_other_end());
    if (thread->has_watched()) LimitEnd(thread->mutable_watched());
  }

  void LimitEnd(v1::OtherEnd* end) {
    KeepFirst(limits::kPidsOfOtherEnd, end->mutable_pids());
    KeepFirst(end->pids_size(), end->mutable_names());
    KeepFirst(end->pids_size(), end->mutable_called());
    KeepFirst(limits::kSocketsOfOtherEnd, end->mutable_sockets());
  }

  void LimitChild(bool has_threads, v1::ChildProcess* child) {
    KeepFirst(has_threads ? limits::kThreadsOfChild : 0, child->mutable_threads());
    for (v1::ThreadStack& thread : *child->mutable_threads()) {
      KeepFirst(limits::kFramesOfChild, thread.mutable_frames());
      LimitOtherEnd(&thread);
    }
  }

  bool has_cut() const { return has_cut_; }

 private:
  bool has_cut_ = false;
};

}  // namespace

bool LimitStack(v1::ProcessStack* stack) {
  Limiter limiter;
  limiter.KeepFirst(limits::kChildren, stack->mutable_children());
  limiter.KeepFirst(limits::kFileLocks, stack->mutable_locks());
  limiter.KeepFirst(limits::kOthers, stack->mutable_others());
  limiter.KeepFirst(limits::kNetworks, stack->mutable_network());
  int room = limits::kNetworkStatesOfStack;
  for (v1::NetworkSample& sample : *stack->mutable_network()) {
    const int most = std::min(room, limits::kNetworkStates);
    if (sample.states_size() > most) sample.set_incomplete(true);
    limiter.KeepFirst(most, sample.mutable_states());
    room -= sample.states_size();
  }
  for (v1::ChildProcess& other : *stack->mutable_others()) limiter.LimitChild(true, &other);
  for (v1::ThreadStack& thread : *stack->mutable_threads()) limiter.LimitOtherEnd(&thread);
  int sampled = 0;
  for (v1::ChildProcess& child : *stack->mutable_children()) {
    if (!child.threads().empty()) ++sampled;
    limiter.LimitChild(sampled <= limits::kSampledChildren, &child);
  }
  return limiter.has_cut();
}

}  // namespace rollcall
