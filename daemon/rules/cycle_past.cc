// SPDX-License-Identifier: Apache-2.0
// JudgeCycleByPast(): a rank waits in a send or receive whose other end was never issued, and the
// peer waits in a later call of the same cycle. Either the peer skipped its end, or the waiting
// rank issued one too many: the one that is out of step with its own past is the culprit.
#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/model/habit.h"
#include "daemon/model/progress.h"
#include "daemon/rules/p2p_pairs.h"
#include "daemon/rules/past_calls.h"
#include "daemon/rules/rules.h"
#include "daemon/words/communicator_names.h"
#include "daemon/words/evidence.h"
#include "daemon/words/habits.h"
#include "daemon/words/sentence_parts.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

constexpr size_t kHorizon = 128;  // newest calls of a rank in which to look for a slip
constexpr size_t kMostCyclePairs = 8;

// True if older calls are lost, and the slip is a call of which the rest shows no other one: then
// it may be an old custom.
bool MayBeOlder(const Past& past, const std::vector<CallToken>& tokens, const Slip& slip) {
  if (slip.kind != Slip::Kind::kExtra || past.is_whole) return false;
  return std::any_of(slip.calls.begin(), slip.calls.end(), [&](size_t call) {
    return std::count(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(call),
                      tokens[call]) == 0;
  });
}

// What a rank's past shows of its sends to and receives from its peer in the pair.
struct Finding {
  Slip slip;
  CallArgs call;  // the first skipped or extra one
};

Finding JudgePast(const Past& past, const Communicator* comm, int32_t peer) {
  const auto concerns = [&](size_t i) {
    const CallArgs& args = past.calls[i].record->args;
    return past.calls[i].communicator == comm && args.peer == peer &&
           OpKind(args.op) == CallKind::kP2p;
  };
  Finding finding;
  for (const bool with_count : {true, false}) {
    const std::vector<CallToken> tokens = TokensOf(past, with_count);
    finding.slip = FindSlip(tokens, kHorizon, concerns);
    if (MayBeOlder(past, tokens, finding.slip)) finding.slip = Slip();
    if (finding.slip.kind != Slip::Kind::kUnknown) break;
  }
  const std::vector<size_t>& calls = finding.slip.calls;
  const auto first = std::find_if(calls.begin(), calls.end(), concerns);
  if (first != calls.end()) finding.call = past.calls[*first].record->args;
  return finding;
}

void AddPast(const JobState& job, const P2pPair& pair, const Finding& finding, int32_t process,
             int32_t rank, Verdict* verdict) {
  const Communicator& comm = *pair.call->communicator;
  const std::string call = EndInWords(finding.call, CommunicatorInWords(job, comm));
  const bool is_skip = finding.slip.kind == Slip::Kind::kSkipped;
  const Habit& habit = finding.slip.habit;
  verdict->certainty = std::min(verdict->certainty, Certainty::kLikely);
  verdict->evidence.push_back((is_skip ? SkippedInWords : AddedInWords)(
      PublicRank(job, process, rank), call, habit.period, habit.steps()));
  verdict->missing_evidence.push_back(
      "which of both ends is wrong: what the ranks have done in their last steps decides");
}

}  // namespace

std::optional<Verdict> JudgeCycleByPast(const JobState& job, const StuckCalls& calls,
                                        const std::vector<size_t>& cycle, int64_t now_ns,
                                        const Limits& limits) {
  Pasts pasts(CommunicatorsOf(calls, cycle));
  for (const P2pPair& pair : FindPairs(calls, cycle, kMostCyclePairs)) {
    const Waiter& waiter = pair.waiter;
    const Absent& absent = pair.absent;
    const Communicator* comm = pair.call->communicator;
    const Finding theirs = JudgePast(pasts.Of(absent.process), comm, waiter.rank);
    const Finding ours = JudgePast(pasts.Of(waiter.process), comm, absent.rank);
    std::optional<Verdict> verdict;
    if (theirs.slip.kind == Slip::Kind::kSkipped && ours.slip.kind == Slip::Kind::kNone) {
      verdict = JudgeUnmatchedP2p({job, *pair.call, {absent}, now_ns, limits});
      if (verdict) AddPast(job, pair, theirs, absent.process, absent.rank, &*verdict);
    } else if (ours.slip.kind == Slip::Kind::kExtra && theirs.slip.kind == Slip::Kind::kNone) {
      verdict = BlameWaiter(job, pair, ours.call, calls, cycle, now_ns, limits);
      if (verdict) AddPast(job, pair, ours, waiter.process, waiter.rank, &*verdict);
    }
    if (verdict) return verdict;
  }
  return std::nullopt;
}

std::optional<Verdict> JudgeP2pByPast(const JobState& job, const StuckCalls& calls, size_t call,
                                      int64_t now_ns, const Limits& limits) {
  std::vector<size_t> concerned = {call};
  std::set<int32_t> parties;
  for (const Waiter& w : calls[call]->waiters) parties.insert(w.process);
  for (const Absent& a : calls[call]->absents) parties.insert(a.process);
  for (size_t i = 0; i < calls.size(); ++i) {
    const bool waits = std::any_of(calls[i]->waiters.begin(), calls[i]->waiters.end(),
                                   [&](const Waiter& w) { return parties.count(w.process) != 0; });
    const bool is_other = i != call && calls[i]->kind != StuckCall::Kind::kP2p;
    if (is_other && waits) concerned.push_back(i);
  }
  return JudgeCycleByPast(job, calls, concerned, now_ns, limits);
}

}  // namespace rollcall
