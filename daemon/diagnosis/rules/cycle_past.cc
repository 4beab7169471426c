// SPDX-License-Identifier: Apache-2.0
// JudgeCycleByPast(): a rank waits in a send or receive whose other end was never issued, and the
// peer waits in a later call of the same cycle. Either the peer skipped its end, or the waiting
// rank issued one too many: the one that is out of step with its own past is the culprit.
#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/diagnosis/rules/habit.h"
#include "daemon/diagnosis/rules/rules.h"
#include "daemon/model/first_calls.h"
#include "daemon/model/progress.h"
#include "daemon/words/communicator_names.h"
#include "daemon/words/evidence.h"
#include "daemon/words/habits.h"
#include "daemon/words/sentence_parts.h"
#include "daemon/words/terms.h"
#include "interpose/segment.h"

namespace rollcall {
namespace {

constexpr size_t kHorizon = 128;     // newest calls of a rank in which to look for a slip
constexpr size_t kMostCalls = 1024;  // of its past
constexpr size_t kMostPairs = 8;

// A rank that waits in a send or receive, and its peer without the other end.
struct Pair {
  const StuckCall* call = nullptr;
  Waiter waiter;
  Absent absent;
};

std::vector<Pair> FindPairs(const StuckCalls& calls, const std::vector<size_t>& cycle) {
  std::vector<Pair> pairs;
  for (const size_t i : cycle) {
    if (calls[i]->kind != StuckCall::Kind::kP2p) continue;
    for (const Absent& absent : calls[i]->absents) {
      const bool is_there = absent.gone == Gone::kNo && !absent.silent && !absent.stale;
      if (absent.lack != Lack::kNotEntered || !is_there) continue;
      for (const Waiter& waiter : calls[i]->waiters) {
        if (pairs.size() < kMostPairs) pairs.push_back({calls[i], waiter, absent});
      }
    }
  }
  return pairs;
}

std::vector<const Communicator*> CommunicatorsOf(const StuckCalls& calls,
                                                 const std::vector<size_t>& cycle) {
  std::vector<const Communicator*> comms;
  for (const size_t i : cycle) {
    const Communicator* comm = calls[i]->communicator;
    if (std::find(comms.begin(), comms.end(), comm) == comms.end()) comms.push_back(comm);
  }
  return comms;
}

struct PastCall {
  const Communicator* communicator = nullptr;
  const CallRecord* record = nullptr;
  // When the process entered it, but not before an earlier call on the communicator: the estimate
  // of a host's clock changes from tick to tick.
  int64_t entered_ns = 0;
};

// The calls of a process on the communicators of the cycle, in order.
std::vector<PastCall> FindPast(const std::vector<const Communicator*>& comms, int32_t process) {
  std::vector<PastCall> past;
  int64_t complete_from_ns = 0;  // older records of some communicator are lost
  for (const Communicator* comm : comms) {
    for (const auto& [rank, member] : comm->members) {
      if (member.process != process || member.records.empty()) continue;
      const CallRecord& oldest = member.records.front();
      if (oldest.index != 0) complete_from_ns = std::max(complete_from_ns, oldest.entered_ns);
      int64_t entered_ns = 0;
      for (const CallRecord& record : member.records) {
        entered_ns = std::max(entered_ns, record.entered_ns);
        if (Happens(record)) past.push_back({comm, &record, entered_ns});
      }
    }
  }
  past.erase(std::remove_if(past.begin(), past.end(),
                            [&](const PastCall& call) {
                              return call.entered_ns < complete_from_ns;
                            }),
             past.end());
  std::stable_sort(past.begin(), past.end(), [](const PastCall& a, const PastCall& b) {
    return a.entered_ns < b.entered_ns;
  });
  past.erase(past.begin(), past.end() - static_cast<std::ptrdiff_t>(std::min(past.size(), kMostCalls)));
  return past;
}

std::vector<CallToken> TokensOf(const std::vector<PastCall>& past, bool with_count) {
  std::vector<CallToken> tokens;
  tokens.reserve(past.size());
  for (const PastCall& call : past) {
    CallArgs args = call.record->args;
    if (!with_count) args.count = 0;
    tokens.push_back(segment::Mix(call.communicator->id, SignatureOf(args)));
  }
  return tokens;
}

// True if older calls are lost, and the slip is a call of which the rest shows no other one: then it
// may be an old custom.
bool MayBeOlder(const std::vector<PastCall>& past, const std::vector<CallToken>& tokens,
                const Slip& slip) {
  if (slip.kind != Slip::Kind::kExtra || past.front().record->index == 0) return false;
  return std::any_of(slip.calls.begin(), slip.calls.end(), [&](size_t call) {
    return std::count(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(call),
                      tokens[call]) == 0;
  });
}

// What a rank's past says of its sends to and receives from its peer in the pair.
struct Finding {
  Slip slip;
  CallArgs call;  // the first skipped or extra one
};

Finding JudgePast(const std::vector<const Communicator*>& comms, const Pair& pair, int32_t process,
                  int32_t peer) {
  const std::vector<PastCall> past = FindPast(comms, process);
  const auto concerns = [&](size_t i) {
    const CallArgs& args = past[i].record->args;
    return past[i].communicator == pair.call->communicator && args.peer == peer &&
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
  if (first != calls.end()) finding.call = past[*first].record->args;
  return finding;
}

bool HasSlipped(const Finding& finding) {
  return finding.slip.kind == Slip::Kind::kSkipped || finding.slip.kind == Slip::Kind::kExtra;
}

bool HasKept(const Finding& finding) { return finding.slip.kind == Slip::Kind::kNone; }

// The waiting rank has issued an end too many: all others of the cycle wait for it.
std::optional<Verdict> BlameWaiter(const JobState& job, const Pair& pair, const StuckCalls& calls,
                                   const std::vector<size_t>& cycle, int64_t now_ns,
                                   const Limits& limits) {
  const Communicator& comm = *pair.call->communicator;
  std::optional<Verdict> verdict =
      Describe({job, *pair.call, {}, now_ns, limits}, Cause::kUnmatchedP2p,
               SuspectAfter(comm, pair.call->call, limits));
  if (!verdict) return verdict;
  verdict->certainty = CertaintyOfWaits(pair.call->waiters);
  verdict->divergence = DivergenceKind::kExtra;
  const int32_t process = pair.waiter.process, rank = pair.waiter.rank;
  verdict->culprits.push_back(MakeCulprit(job, process, rank, FindMember(comm, rank)));
  verdict->waiting_ranks.clear();
  verdict->waiting_processes.clear();
  std::set<int32_t> known = {process};
  for (const size_t i : cycle) {
    for (const Waiter& w : calls[i]->waiters) {
      if (!known.insert(w.process).second) continue;
      verdict->waiting_processes.push_back(w.process);
      verdict->waiting_ranks.push_back(PublicRank(job, w.process, w.rank));
    }
  }
  return verdict;
}

void AddPast(const JobState& job, const Pair& pair, const Finding& finding, int32_t process,
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
  const std::vector<Pair> pairs = FindPairs(calls, cycle);
  const std::vector<const Communicator*> comms = CommunicatorsOf(calls, cycle);
  for (const Pair& pair : pairs) {
    const Waiter& waiter = pair.waiter;
    const Absent& absent = pair.absent;
    const Finding theirs = JudgePast(comms, pair, absent.process, waiter.rank);
    const Finding ours = JudgePast(comms, pair, waiter.process, absent.rank);
    std::optional<Verdict> verdict;
    if (HasSlipped(theirs) && HasKept(ours)) {
      verdict = JudgeUnmatchedP2p({job, *pair.call, {absent}, now_ns, limits});
      if (verdict) AddPast(job, pair, theirs, absent.process, absent.rank, &*verdict);
    } else if (HasSlipped(ours) && HasKept(theirs)) {
      verdict = BlameWaiter(job, pair, calls, cycle, now_ns, limits);
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
