// SPDX-License-Identifier: Apache-2.0
// JudgeCycleByPast(): a rank waits in a send or receive whose other end was never issued, and the
// peer waits in a later call of the same cycle. Either the peer skipped its end, or the waiting
// rank issued one too many: the one that is out of step with its own past is the culprit.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
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

bool WaitsIn(const StuckCall& call, int32_t process) {
  return std::any_of(call.waiters.begin(), call.waiters.end(),
                     [process](const Waiter& waiter) { return waiter.process == process; });
}

// The pairs among these calls in which the peer waits in another one of them. A peer that waits
// nowhere may yet issue its end: it is late, whatever the waiting rank usually does.
std::vector<Pair> FindPairs(const StuckCalls& calls, const std::vector<size_t>& concerned) {
  std::vector<Pair> pairs;
  for (const size_t i : concerned) {
    if (calls[i]->kind != StuckCall::Kind::kP2p) continue;
    for (const Absent& absent : calls[i]->absents) {
      const bool is_there = absent.gone == Gone::kNo && !absent.silent && !absent.stale;
      const bool waits_elsewhere =
          std::any_of(concerned.begin(), concerned.end(), [&](size_t other) {
            return other != i && WaitsIn(*calls[other], absent.process);
          });
      if (absent.lack != Lack::kNotEntered || !is_there || !waits_elsewhere) continue;
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

struct Past {
  std::vector<PastCall> calls;  // on the communicators of the cycle, in order
  bool is_whole = true;         // these are all such calls of the process
};

// Adds a member's records after the last one that is lost. Returns when they begin, 0: at the
// member's first call.
int64_t AddRecords(const Communicator& comm, const Member& member, std::vector<PastCall>* calls) {
  const size_t begin = calls->size();
  uint64_t next = 0;
  int64_t entered_ns = 0, complete_from_ns = 0;
  for (const CallRecord& record : member.records) {
    entered_ns = std::max(entered_ns, record.entered_ns);
    if (record.index != next) {
      calls->resize(begin);
      complete_from_ns = entered_ns;
    }
    next = record.index + 1;
    if (Happens(record)) calls->push_back({&comm, &record, entered_ns});
  }
  return complete_from_ns;
}

Past FindPast(const std::vector<const Communicator*>& comms, int32_t process) {
  Past past;
  int64_t complete_from_ns = 0;
  for (const Communicator* comm : comms) {
    for (const auto& [rank, member] : comm->members) {
      if (member.process != process) continue;
      complete_from_ns = std::max(complete_from_ns, AddRecords(*comm, member, &past.calls));
    }
  }
  std::vector<PastCall>& calls = past.calls;
  calls.erase(std::remove_if(calls.begin(), calls.end(),
                             [&](const PastCall& call) {
                               return call.entered_ns < complete_from_ns;
                             }),
              calls.end());
  std::stable_sort(calls.begin(), calls.end(), [](const PastCall& a, const PastCall& b) {
    return a.entered_ns < b.entered_ns;
  });
  past.is_whole = complete_from_ns == 0 && calls.size() <= kMostCalls;
  calls.erase(calls.begin(),
              calls.end() - static_cast<std::ptrdiff_t>(std::min(calls.size(), kMostCalls)));
  return past;
}

std::vector<CallToken> TokensOf(const Past& past, bool with_count) {
  std::vector<CallToken> tokens;
  tokens.reserve(past.calls.size());
  for (const PastCall& call : past.calls) {
    CallArgs args = call.record->args;
    if (!with_count) args.count = 0;
    tokens.push_back(segment::Mix(call.communicator->id, SignatureOf(args)));
  }
  return tokens;
}

// True if older calls are lost, and the slip is a call of which the rest shows no other one: then it
// may be an old custom.
bool MayBeOlder(const Past& past, const std::vector<CallToken>& tokens, const Slip& slip) {
  if (slip.kind != Slip::Kind::kExtra || past.is_whole) return false;
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

// Finds each rank's past once for all pairs.
class Pasts {
 public:
  explicit Pasts(std::vector<const Communicator*> comms) : comms_(std::move(comms)) {}

  const Past& Of(int32_t process) {
    const auto [found, is_new] = pasts_.try_emplace(process);
    if (is_new) found->second = FindPast(comms_, process);
    return found->second;
  }

 private:
  const std::vector<const Communicator*> comms_;
  std::map<int32_t, Past> pasts_;
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

// The waiting rank has issued an end too many: all others of the cycle wait for it.
std::optional<Verdict> BlameWaiter(const JobState& job, const Pair& pair, const CallArgs& extra,
                                   const StuckCalls& calls, const std::vector<size_t>& cycle,
                                   int64_t now_ns, const Limits& limits) {
  const Communicator& comm = *pair.call->communicator;
  std::optional<Verdict> verdict =
      Describe({job, *pair.call, {}, now_ns, limits}, Cause::kUnmatchedP2p,
               SuspectAfter(comm, pair.call->call, limits));
  if (!verdict) return verdict;
  verdict->certainty = std::min(CertaintyOfWaits(pair.call->waiters), pair.absent.at_most);
  verdict->divergence = DivergenceKind::kExtra;
  verdict->call = extra;
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
  Pasts pasts(CommunicatorsOf(calls, cycle));
  for (const Pair& pair : FindPairs(calls, cycle)) {
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
