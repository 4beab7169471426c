// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/learned_step.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/model/first_calls.h"
#include "daemon/model/habit.h"
#include "daemon/model/progress.h"
#include "daemon/rules/past_calls.h"

namespace rollcall {
namespace {

constexpr size_t kMostJudged = 4;    // waiting ranks, until one of them has a habit
constexpr size_t kMostCalls = 1024;  // of its past
constexpr size_t kLeastPeriod = 2;   // where all calls are equal, their number shows as much

struct Counted {
  uint64_t step = 0;
  size_t period = 0;
  bool exact = false;  // the records show every call from the first step on
};

std::optional<Counted> CountSteps(const Member& member, uint64_t position) {
  std::vector<const CallRecord*> calls = CallsUpTo(member, position);
  if (calls.empty()) return std::nullopt;
  if (calls.size() > kMostCalls) calls.erase(calls.begin(), calls.end() - kMostCalls);
  for (const bool with_count : {true, false}) {
    std::vector<CallToken> tokens;
    tokens.reserve(calls.size());
    for (const CallRecord* call : calls) {
      CallArgs args = call->args;
      if (!with_count) args.count = 0;
      tokens.push_back(SignatureOf(args));
    }
    const Habit habit = JudgeCall(tokens, tokens.size() - 1).habit;
    if (habit.period < kLeastPeriod) continue;
    const uint64_t newest = calls.back()->position;
    Counted counted;
    counted.period = habit.period;
    counted.exact = calls.front()->position == 0;
    // Calls of the warm-up belong to no step. Where they are lost, there may have been some.
    const uint64_t warm_up = counted.exact ? newest - std::min<uint64_t>(newest, habit.kept) : 0;
    counted.step = (newest - warm_up) / habit.period;
    return counted;
  }
  return std::nullopt;
}

}  // namespace

size_t LearnStep(const JobState& job, Verdict* verdict) {
  const auto comm = job.communicators.find(verdict->communicator);
  if (verdict->step >= 0 || comm == job.communicators.end()) return 0;
  std::vector<int32_t> waiting = verdict->waiting_processes;
  if (!std::is_sorted(waiting.begin(), waiting.end())) std::sort(waiting.begin(), waiting.end());
  size_t judged = 0;
  for (const auto& [rank, member] : comm->second.members) {
    if (!std::binary_search(waiting.begin(), waiting.end(), member.process)) continue;
    if (judged++ == kMostJudged) return 0;
    const std::optional<Counted> counted = CountSteps(member, verdict->position);
    if (!counted) continue;
    verdict->step = static_cast<int64_t>(counted->step);
    verdict->evidence.push_back(absl::StrCat(
        "step ", counted->step, ": counted by the ", counted->period,
        " calls that the ranks repeat on the communicator",
        counted->exact ? "" : "; older calls are lost, so it may be some steps fewer"));
    return counted->period;
  }
  return 0;
}

}  // namespace rollcall
