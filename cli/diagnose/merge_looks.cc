// SPDX-License-Identifier: Apache-2.0
#include "cli/diagnose/merge_looks.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

namespace rollcall {
namespace {

// A sample makes a thread sleep twice (agent/stacks/sample_switches.h). A look leaves out what its
// own samples have caused, and not those of another look.
constexpr uint64_t kSwitchesOfSample = 2;

using Switches = std::map<int32_t, uint64_t>;  // by thread

Switches SwitchesOf(const v1::ProcessStack& stack) {
  Switches switches;
  for (const v1::ThreadStack& thread : stack.threads()) switches[thread.tid()] = thread.switches();
  return switches;
}

void LeaveOutSamples(const Switches& before, int samples, v1::ProcessStack* stack) {
  const uint64_t caused = kSwitchesOfSample * static_cast<uint64_t>(samples);
  for (v1::ThreadStack& thread : *stack->mutable_threads()) {
    const auto at = before.find(thread.tid());
    if (thread.switches() == 0 || at == before.end() || at->second == 0) continue;
    const uint64_t without = thread.switches() - std::min(caused, thread.switches());
    thread.set_switches(std::max(without, std::min(at->second, thread.switches())));
  }
}

void Prepend(const v1::ProcessLook& earlier, v1::ProcessLook* process) {
  if (earlier.samples().empty()) return;
  const Switches before = SwitchesOf(earlier.samples(earlier.samples_size() - 1).stack());
  for (v1::StackSample& sample : *process->mutable_samples())
    LeaveOutSamples(before, earlier.samples_size(), sample.mutable_stack());
  v1::ProcessLook joined;
  *joined.mutable_samples() = earlier.samples();
  joined.mutable_samples()->MergeFrom(process->samples());
  process->mutable_samples()->Swap(joined.mutable_samples());
}

}  // namespace

v1::HostLook MergeLooks(const v1::HostLook& first, v1::HostLook second) {
  std::map<std::pair<int32_t, uint64_t>, const v1::ProcessLook*> earlier;
  for (const v1::ProcessLook& process : first.processes())
    earlier[{process.process().pid(), process.process().start_time()}] = &process;
  for (v1::ProcessLook& process : *second.mutable_processes()) {
    const auto same = earlier.find({process.process().pid(), process.process().start_time()});
    if (same != earlier.end()) Prepend(*same->second, &process);
  }
  second.set_begun_ns(first.begun_ns());
  return second;
}

}  // namespace rollcall
