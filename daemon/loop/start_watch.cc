// SPDX-License-Identifier: Apache-2.0
#include "daemon/loop/start_watch.h"

#include <algorithm>

#include "base/durations.h"
#include "daemon/model/wait_frames.h"
#include "daemon/rules/rules.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {
namespace {

constexpr int64_t kPortionsApartNs = kSecond;

bool IsRank(const Process& process) {
  return process.global_rank >= 0 && process.liveness == Liveness::kAlive;
}

}  // namespace

bool WaitsForOthers(const v1::ProcessStack& stack) {
  for (const v1::ThreadStack& thread : stack.threads()) {
    if (thread.tid() != stack.pid()) continue;
    for (const v1::Frame& frame : thread.frames()) {
      if (HasWait(frame.function(), waits::kStore)) return true;
    }
  }
  return false;
}

std::vector<int32_t> StartWatch::Next(const JobState& state, int64_t now_ns, const Limits& limits) {
  std::vector<int32_t> portion;
  if (HasStarted(state) || std::none_of(state.processes.begin(), state.processes.end(), IsRank)) {
    next_ns_ = 0;
    return portion;
  }
  if (next_ns_ == 0) next_ns_ = now_ns + limits.suspect_after_ns;
  if (now_ns < next_ns_) return portion;
  for (; at_ < state.processes.size() && portion.size() < kStartPortion; ++at_) {
    if (IsRank(state.processes[at_])) portion.push_back(static_cast<int32_t>(at_));
  }
  next_ns_ = now_ns + kPortionsApartNs;
  if (at_ == state.processes.size()) {
    at_ = 0;
    next_ns_ = now_ns + StartRoundNs(0, limits);
  }
  return portion;
}

}  // namespace rollcall
