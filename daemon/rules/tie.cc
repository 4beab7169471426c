// SPDX-License-Identifier: Apache-2.0
#include "daemon/rules/tie.h"

#include <algorithm>

#include "daemon/model/first_calls.h"
#include "daemon/model/progress.h"
#include "daemon/rules/past_calls.h"

namespace rollcall {
namespace {

constexpr size_t kMostJudged = 4;  // ranks of a side, until one of them has a habit

CallToken TokenOf(CallArgs args, bool with_count) {
  if (!with_count) args.count = 0;
  return SignatureOf(args);
}

struct JudgedSide {
  Judged judged;
  CallArgs expected;  // kBroken: the call of its habit
};

// A call that the records show nowhere else may have come before them: then it breaks no habit.
bool MayBeOlder(const Communicator& comm, const std::vector<const CallRecord*>& calls,
                const std::vector<CallToken>& tokens, bool with_count) {
  const uint64_t begin = calls.front()->position;
  if (begin == 0 || std::count(tokens.begin(), tokens.end(), tokens.back()) > 1) return false;
  return !with_count || MayHaveComeBefore(comm, calls.back()->args, begin);
}

JudgedSide JudgeCalls(const Communicator& comm, const std::vector<const CallRecord*>& calls,
                      bool with_count) {
  JudgedSide side;
  std::vector<CallToken> tokens;
  tokens.reserve(calls.size());
  for (const CallRecord* call : calls) tokens.push_back(TokenOf(call->args, with_count));
  side.judged = JudgeCall(tokens, tokens.size() - 1);
  if (side.judged.conduct != Conduct::kBroken) return side;
  if (MayBeOlder(comm, calls, tokens, with_count)) side.judged.conduct = Conduct::kUnknown;
  side.expected = calls[calls.size() - 1 - side.judged.habit.period]->args;
  return side;
}

// Judges the member's call at `position`. Where lengths change from step to step, its operations
// alone may have a habit.
JudgedSide JudgeMember(const Communicator& comm, const Member& member, uint64_t position) {
  const std::vector<const CallRecord*> calls = CallsUpTo(member, position);
  if (calls.empty() || calls.back()->position != position) return {};
  JudgedSide side = JudgeCalls(comm, calls, true);
  if (side.judged.habit.period == 0) side = JudgeCalls(comm, calls, false);
  return side;
}

JudgedSide JudgeSide(const Communicator& comm, const std::vector<int32_t>& ranks,
                     uint64_t position) {
  JudgedSide judged;
  for (size_t i = 0; i < std::min(ranks.size(), kMostJudged); ++i) {
    judged = JudgeMember(comm, comm.members.at(ranks[i]), position);
    if (judged.judged.conduct != Conduct::kUnknown) break;
  }
  return judged;
}

}  // namespace

std::optional<TieDecision> DecideTie(const Communicator& comm,
                                     const std::vector<const std::vector<int32_t>*>& sides,
                                     uint64_t position) {
  TieDecision decision;
  decision.kept = sides.size();
  for (size_t i = 0; i < sides.size(); ++i) {
    const JudgedSide side = JudgeSide(comm, *sides[i], position);
    if (side.judged.conduct == Conduct::kUnknown) return std::nullopt;
    if (side.judged.conduct == Conduct::kBroken) {
      decision.habit = side.judged.habit;
      decision.expected = side.expected;
    } else if (decision.kept == sides.size()) {
      decision.kept = i;
    } else {
      return std::nullopt;
    }
  }
  return decision.kept == sides.size() ? std::nullopt : std::make_optional(decision);
}

}  // namespace rollcall
