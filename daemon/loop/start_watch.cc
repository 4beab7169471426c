// SPDX-License-Identifier: Apache-2.0
#include "daemon/loop/start_watch.h"

#include <algorithm>

#include "base/durations.h"
#include "daemon/model/stand_kinds.h"
#include "daemon/model/waits/wait_frames.h"
#include "daemon/report/status_view.h"
#include "daemon/rules/rules.h"
#include "interpose/mpi_world.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {
namespace {

constexpr int64_t kPortionsApartNs = kSecond;
constexpr int64_t kLookAgainNs = 2 * kSecond;  // whether a job stands still

constexpr int64_t kLongestProbePauseNs = 600 * kSecond;
constexpr int64_t kSampleOnTheWayNs = 3 * kSecond;

bool UsesMpi(const JobState& state) {
  return std::any_of(state.communicators.begin(), state.communicators.end(),
                     [](const auto& entry) { return entry.second.name == segment::kMpiWorldName; });
}

// By its last sample, if that is of the last round.
bool WasSpinning(const Process& process, int64_t now_ns, const Limits& limits) {
  const Standing* standing = process.standing.get();
  if (standing == nullptr || !WaitsWithTheCpu(*standing)) return false;
  return standing->newest_ns >= now_ns - 2 * StartRoundNs(0, limits) - kSampleOnTheWayNs;
}

bool IsRank(const Process& process) {
  return process.global_rank >= 0 && process.liveness == Liveness::kAlive;
}

// Some ranks wait before the first call, and one that does not is quiet: only the bytes that it
// reads and writes show whether it works for them.
bool AwaitsAQuietRank(const JobState& state, int64_t now_ns) {
  bool any_waits = false, any_is_quiet = false;
  for (const Process& process : state.processes) {
    if (!IsRank(process)) continue;
    const bool waits = process.waits_outside_since_ns != 0;
    const int64_t quiet_ns = process.quiet_since_ns;
    any_waits = any_waits || waits;
    any_is_quiet = any_is_quiet || (!waits && quiet_ns != 0 && quiet_ns <= now_ns - kLookAgainNs);
  }
  return any_waits && any_is_quiet;
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
  const bool has_started = HasStarted(state);
  if (!limits.watches_calls_only && !hangs) {
    wanted.children =
        IsStill(state, now_ns, limits) || (!has_started && AwaitsAQuietRank(state, now_ns));
  }
  if (has_started && !wanted.children) {
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

// Of a job in good health, no rank is quiet for long.
bool StartWatch::IsStill(const JobState& state, int64_t now_ns, const Limits& limits) {
  const int64_t before_ns = now_ns - limits.suspect_after_ns;
  bool may_spin = UsesMpi(state), may_compute = false;
  uint64_t steps = 0;
  for (const Process& process : state.processes) {
    if (!IsRank(process)) continue;
    const bool is_quiet = process.quiet_since_ns != 0 && process.quiet_since_ns <= before_ns;
    may_spin = may_spin || is_quiet;
    may_compute = may_compute || !(is_quiet || WasSpinning(process, now_ns, limits));
    steps += static_cast<uint64_t>(process.step + 1);
  }
  if (may_compute && (!may_spin || !IsProbeDue(now_ns, limits))) return false;
  const uint64_t progress = steps + CallsEntered(state);
  if (progress != progress_ || progress_ns_ == 0) {
    progress_ = progress;
    progress_ns_ = now_ns;
    probe_pause_ns_ = 0;
    probe_ns_ = now_ns + limits.suspect_after_ns;
  }
  return progress_ns_ <= before_ns || !HasStarted(state);
}

// Only a sample shows whether a rank that uses the CPU waits for one that does not, or computes.
// One that computes is seldom sampled.
bool StartWatch::IsProbeDue(int64_t now_ns, const Limits& limits) {
  if (at_ != 0) return true;  // a round goes on
  if (now_ns < probe_ns_) return false;
  probe_pause_ns_ =
      std::min(std::max(2 * probe_pause_ns_, limits.suspect_after_ns), kLongestProbePauseNs);
  probe_ns_ = now_ns + probe_pause_ns_;
  next_ns_ = now_ns;
  return true;
}

}  // namespace rollcall
