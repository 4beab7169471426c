// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/verdict_departure.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "daemon/diagnosis/advice_patterns.h"
#include "daemon/diagnosis/members_by_process.h"
#include "daemon/diagnosis/stack_comparison.h"
#include "daemon/model/first_calls.h"
#include "daemon/model/progress.h"
#include "daemon/rules/habit.h"
#include "daemon/rules/past_calls.h"

namespace rollcall {
namespace {

using Habit = CulpritsCall::Habit;
using Kind = StackDeparture::Kind;

constexpr size_t kMostPastCalls = 1024;  // of its past
constexpr size_t kLeastPastCalls = 4;    // before the call; fewer are the set-up
constexpr size_t kWithoutAPeriod = 16;

bool MayDepart(const Verdict& v) {
  return IsContradiction(v.cause) || Is(v, Cause::kMissingRank) || Is(v, Cause::kUnmatchedP2p) ||
         Is(v, Cause::kTeardownHang);
}

// The number of calls that count as "each step" before the last one.
size_t WindowOf(const std::vector<const CallRecord*>& calls, bool* has_period) {
  std::vector<CallToken> tokens;
  for (size_t i = 0; i + 1 < calls.size(); ++i) tokens.push_back(SignatureOf(calls[i]->args));
  const size_t period = JudgeCall(tokens, tokens.size() - 1).habit.period;
  *has_period = period != 0;
  return period != 0 ? period : std::min(kWithoutAPeriod, tokens.size());
}

// Whether the last call belongs to the step that the rank repeats, and comes from the same line.
Habit JudgeLast(const std::vector<const CallRecord*>& calls) {
  if (calls.size() <= kLeastPastCalls) return Habit::kUnknown;
  const CallRecord& last = *calls.back();
  bool has_period = false;
  const size_t window = WindowOf(calls, &has_period);
  size_t equal = 0, from_line = 0, alike = 0;
  for (size_t i = calls.size() - 1 - window; i + 1 < calls.size(); ++i) {
    const CallRecord& call = *calls[i];
    const bool sites_are_known = call.site != 0 && last.site != 0;
    if (sites_are_known && call.site != last.site) continue;
    const bool is_equal = SignatureOf(call.args) == SignatureOf(last.args);
    if (is_equal) ++equal;
    if (is_equal && sites_are_known) ++from_line;
    if (sites_are_known && call.args.op == last.args.op) ++alike;
  }
  const size_t enough = has_period ? 1 : 2;
  if (from_line >= enough) return Habit::kUsual;
  if (equal >= enough) return Habit::kAlike;
  return equal + alike == 0 ? Habit::kNew : Habit::kUnknown;
}

uint64_t PositionOfCulprit(const Verdict& verdict) {
  for (const AlignedCall& line : verdict.histories) {
    if (line.position == verdict.position && line.culprits.op != Op::kNone) {
      return line.culprit_position;
    }
  }
  return verdict.position;
}

Habit FindHabit(const JobState& job, const Verdict& verdict, int32_t process) {
  const auto comm = job.communicators.find(verdict.communicator);
  if (!IsContradiction(verdict.cause) || comm == job.communicators.end()) return Habit::kUnknown;
  const Member* member = MembersByProcess(comm->second).Find(process);
  if (member == nullptr) return Habit::kUnknown;
  const uint64_t position = PositionOfCulprit(verdict);
  std::vector<const CallRecord*> calls = CallsUpTo(*member, position);
  if (calls.empty() || calls.back()->position != position) return Habit::kUnknown;
  if (calls.size() > kMostPastCalls) calls.erase(calls.begin(), calls.end() - kMostPastCalls);
  return JudgeLast(calls);
}

bool WaitsForRanks(const Verdict& verdict) {
  return IsContradiction(verdict.cause) ||
         CulpritIsIn(verdict, {"distributed_c10d.", "nccl", "NCCL", "c10d::", "gloo::", "MPI_"});
}

// What the stacks show of the calls. The rules compare whole histories where a culprit goes on
// after its odd call; where it is blocked in that call, the histories differ only in the last one.
void SetDivergence(Verdict* verdict) {
  if (!IsContradiction(verdict->cause)) return;
  DivergenceKind& divergence = verdict->divergence;
  const Kind kind = verdict->departure.kind;
  if ((kind == Kind::kLeftLoop || kind == Kind::kStays) && divergence == DivergenceKind::kExtra) {
    divergence = DivergenceKind::kReplaced;
  }
  if (divergence != DivergenceKind::kReplaced) return;
  if (kind == Kind::kSkipped) divergence = DivergenceKind::kSkipped;
  if (kind == Kind::kExtra) divergence = DivergenceKind::kExtra;
}

}  // namespace

void AddDeparture(const JobState& job, Verdict* verdict) {
  if (!MayDepart(*verdict) || verdict->waiting_place.program.empty()) return;
  const auto place = std::find_if(verdict->places.begin(), verdict->places.end(),
                                  [](const StackPlace& known) { return !known.program.empty(); });
  if (place == verdict->places.end()) return;
  const auto& culprit = verdict->culprits[static_cast<size_t>(place - verdict->places.begin())];
  const CulpritsCall call = {FindHabit(job, *verdict, culprit.process), WaitsForRanks(*verdict)};
  verdict->departure = CompareStacks(place->program, verdict->waiting_place.program, call);
  SetDivergence(verdict);
}

}  // namespace rollcall
