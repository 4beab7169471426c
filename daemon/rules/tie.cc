// SPDX-License-Identifier: Apache-2.0
#include "daemon/rules/tie.h"

#include <algorithm>
#include <cstddef>
#include <functional>

#include "daemon/model/first_calls.h"
#include "daemon/model/progress.h"
#include "daemon/rules/past_calls.h"

namespace rollcall {
namespace {

constexpr size_t kMostJudged = 4;          // ranks of a side, until one of them has a habit
constexpr size_t kMostTieMembers = 65536;  // of all communicators: each is looked at

CallToken TokenOf(CallArgs args, bool with_count) {
  if (!with_count) args.count = 0;
  return SignatureOf(args);
}

struct JudgedSide {
  Judged judged;
  CallArgs expected;  // kBroken: the call of its habit
  uint64_t expected_on = 0;
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

// The communicators whose members' calls are kept. Without all of a job's calls, no sequence of
// them is whole.
std::vector<const Communicator*> RecordedIn(const JobState& job) {
  std::vector<const Communicator*> comms;
  for (const auto& [id, comm] : job.communicators) {
    if (comm.version != 0 && !comm.keeps_records) return {};
    comms.push_back(&comm);
  }
  return comms;
}

bool HasManyMembers(const std::vector<const Communicator*>& comms) {
  size_t members = 0;
  for (const Communicator* comm : comms) members += comm->members.size();
  return members > kMostTieMembers;
}

// The index of the collective at this position; the number of calls if it is lost.
size_t FindCall(const Past& past, const Communicator& comm, uint64_t position) {
  const auto at = std::find_if(past.calls.begin(), past.calls.end(), [&](const PastCall& call) {
    return call.communicator == &comm && TakesPosition(*call.record) &&
           call.record->position == position;
  });
  return static_cast<size_t>(at - past.calls.begin());
}

JudgedSide JudgeInPast(const Past& past, const std::vector<CallToken>& tokens, size_t at) {
  JudgedSide side;
  side.judged = JudgeCall(tokens, at);
  if (side.judged.conduct != Conduct::kBroken) return side;
  const auto call = tokens.begin() + static_cast<std::ptrdiff_t>(at);
  if (!past.is_whole && std::find(tokens.begin(), call, *call) == call) {
    side.judged.conduct = Conduct::kUnknown;
  }
  const PastCall& expected = past.calls[at - side.judged.habit.period];
  side.expected = expected.record->args;
  if (expected.communicator != past.calls[at].communicator) {
    side.expected_on = expected.communicator->id;
  }
  return side;
}

// Judges the process's call among its calls on all communicators: a step may make most of its calls
// on others.
JudgedSide JudgeAmongAll(const Past& past, const Communicator& comm, uint64_t position) {
  const size_t at = FindCall(past, comm, position);
  if (at == past.calls.size()) return {};
  const JudgedSide side = JudgeInPast(past, TokensOf(past, true), at);
  if (side.judged.habit.period != 0) return side;
  return JudgeInPast(past, TokensOf(past, false), at);
}

using JudgeRank = std::function<JudgedSide(int32_t)>;

// The first rank of the side that has a habit.
JudgedSide JudgeSide(const std::vector<int32_t>& ranks, const JudgeRank& judge) {
  JudgedSide judged;
  for (size_t i = 0; i < std::min(ranks.size(), kMostJudged); ++i) {
    judged = judge(ranks[i]);
    if (judged.judged.conduct != Conduct::kUnknown) break;
  }
  return judged;
}

using SidesOfTie = std::vector<const std::vector<int32_t>*>;

// Empty if a side has no habit.
std::vector<JudgedSide> JudgeSides(const SidesOfTie& sides, const JudgeRank& judge) {
  std::vector<JudgedSide> judged;
  for (const std::vector<int32_t>* side : sides) {
    judged.push_back(JudgeSide(*side, judge));
    if (judged.back().judged.conduct == Conduct::kUnknown) return {};
  }
  return judged;
}

std::optional<TieDecision> DecideBy(const std::vector<JudgedSide>& sides) {
  TieDecision decision;
  decision.kept = sides.size();
  for (size_t i = 0; i < sides.size(); ++i) {
    const JudgedSide& side = sides[i];
    if (side.judged.conduct == Conduct::kBroken) {
      decision.habit = side.judged.habit;
      decision.expected = side.expected;
      decision.expected_on = side.expected_on;
    } else if (decision.kept == sides.size()) {
      decision.kept = i;
    } else {
      return std::nullopt;
    }
  }
  return decision.kept == sides.size() ? std::nullopt : std::make_optional(decision);
}

}  // namespace

std::optional<TieDecision> DecideTie(const JobState& job, const Communicator& comm,
                                     const std::vector<const std::vector<int32_t>*>& sides,
                                     uint64_t position) {
  std::vector<JudgedSide> judged = JudgeSides(
      sides, [&](int32_t rank) { return JudgeMember(comm, comm.members.at(rank), position); });
  if (!judged.empty()) return DecideBy(judged);
  // A process that holds several ranks makes the calls of all of them.
  if (comm.has_siblings) return std::nullopt;
  Pasts pasts(RecordedIn(job));
  judged = JudgeSides(sides, [&](int32_t rank) {
    return JudgeAmongAll(pasts.Of(comm.members.at(rank).process), comm, position);
  });
  return DecideBy(judged);
}

bool IsUsualElsewhere(const JobState& job, const Communicator& comm, const Member& member,
                      uint64_t position) {
  if (comm.has_siblings) return false;
  const CallRecord* record = FindCollective(member, position);
  const std::vector<const Communicator*> comms = RecordedIn(job);
  if (record == nullptr || HasManyMembers(comms)) return false;
  Pasts pasts(comms);
  const JudgedSide side = JudgeAmongAll(pasts.Of(member.process), comm, position);
  return side.judged.conduct == Conduct::kBroken && side.expected_on != 0 &&
         SignatureOf(side.expected) == SignatureOf(record->args);
}

}  // namespace rollcall
