// SPDX-License-Identifier: Apache-2.0
#include "daemon/loop/start_watch.h"

#include <algorithm>

#include "base/durations.h"
#include "daemon/model/wait_frames.h"
#include "daemon/report/status_view.h"
#include "daemon/rules/rules.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {
namespace {

constexpr int64_t kPortionsApartNs = kSecond;
constexpr int64_t kLookAgainNs = 2 * kSecond;  // whether a job stands still

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

SamplesWanted StartWatch::Next(const JobState& state, bool hangs, int64_t now_ns,
                               const Limits& limits) {
  SamplesWanted wanted;
  if (std::none_of(state.processes.begin(), state.processes.end(), IsRank)) {
    next_ns_ = 0;
    return wanted;
  }
  wanted.children = !limits.watches_calls_only && !hangs && IsStill(state, now_ns, limits);
  if (HasStarted(state) && !wanted.children) {
    next_ns_ = limits.watches_calls_only ? 0 : now_ns + kLookAgainNs;
    at_ = 0;
    return wanted;
  }
  if (next_ns_ == 0) next_ns_ = now_ns + limits.suspect_after_ns;
  if (now_ns < next_ns_) return wanted;
  for (; at_ < state.processes.size() && wanted.processes.size() < kStartPortion; ++at_) {
    if (IsRank(state.processes[at_])) wanted.processes.push_back(static_cast<int32_t>(at_));
  }
  next_ns_ = now_ns + kPortionsApartNs;
  if (at_ == state.processes.size()) {
    at_ = 0;
    next_ns_ = now_ns + StartRoundNs(0, limits);
  }
  return wanted;
}

// The ranks of a job in good health end the search early.
bool StartWatch::IsStill(const JobState& state, int64_t now_ns, const Limits& limits) {
  const int64_t before_ns = now_ns - limits.suspect_after_ns;
  uint64_t progress = 0;
  for (const Process& process : state.processes) {
    if (!IsRank(process)) continue;
    if (process.quiet_since_ns == 0 || process.quiet_since_ns > before_ns) return false;
    progress += static_cast<uint64_t>(process.step + 1);
  }
  progress += CallsEntered(state);
  if (progress != progress_ || progress_ns_ == 0) {
    progress_ = progress;
    progress_ns_ = now_ns;
  }
  return progress_ns_ <= before_ns || !HasStarted(state);
}

}  // namespace rollcall
