// SPDX-License-Identifier: Apache-2.0
#include "agent/link/sample_effects.h"

#include <algorithm>

namespace rollcall {

uint64_t SampleEffects::WithoutSamples(ProcessId process, pid_t tid, uint64_t count,
                                       uint64_t added) {
  const MutexLock lock(mutex_);
  const bool is_new = processes_.count(process) == 0;
  if (is_new && processes_.size() == kMostProcesses) ForgetOldest();
  Effects& effects = processes_[process];
  effects.used = ++calls_;
  if (effects.added.size() == kMostThreads && effects.added.count(tid) == 0) effects.added.clear();
  uint64_t& earlier = effects.added[tid];
  if (earlier > count) earlier = 0;  // another thread has the number now
  const uint64_t own = count - earlier;
  earlier += added;
  return own;
}

void SampleEffects::ForgetOldest() {
  processes_.erase(
      std::min_element(processes_.begin(), processes_.end(),
                       [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
}

}  // namespace rollcall
