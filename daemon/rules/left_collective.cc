// SPDX-License-Identifier: Apache-2.0
// JudgeLeftCollective(): most ranks of a communicator wait in a collective, and those that have not
// entered it wait for one of them in a send or receive. Either they have left out the collective,
// or their peer has left out its end. By what the ranks in the collective have sent and received,
// that end is missing or not.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/model/progress.h"
#include "daemon/rules/p2p_pairs.h"
#include "daemon/rules/rules.h"
#include "daemon/words/communicator_names.h"
#include "daemon/words/evidence.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

constexpr size_t kMostLeftPairs = 64;
constexpr size_t kMostCompared = 256;

// How many sends and receives a process has issued.
struct Issued {
  uint64_t sends = 0, receives = 0;
  bool is_exact = true;
  uint64_t Count(bool gives) const { return gives ? sends : receives; }
};

using AllIssued = std::map<int32_t, Issued>;  // by process

void AddIssued(const Member& member, Issued* issued) {
  uint64_t counted = 0;
  for (const PeerTraffic& traffic : member.traffic) {
    issued->sends += traffic.sends;
    issued->receives += traffic.receives;
    counted += uint64_t{traffic.sends} + traffic.receives;
  }
  if (counted != member.p2p_entered) issued->is_exact = false;
}

AllIssued CountIssuedBy(const JobState& job, const std::set<int32_t>& processes) {
  AllIssued all;
  for (const int32_t process : processes) all[process] = {};
  for (const auto& [id, comm] : job.communicators) {
    for (const auto& [rank, member] : comm.members) {
      const auto at = all.find(member.process);
      if (at != all.end() && member.p2p_entered != 0) AddIssued(member, &at->second);
    }
  }
  return all;
}

enum class Ends : uint8_t { kUnknown, kComplete, kLacking };

Ends Compare(uint64_t mine, uint64_t usual) {
  if (mine == usual) return Ends::kComplete;
  return mine + 1 == usual ? Ends::kLacking : Ends::kUnknown;
}

// Where all others that exchange messages in that direction have issued the same number, the rank
// must have, too. Else it must where each of them has sent as often as it has received.
Ends JudgeEnds(const AllIssued& all, int32_t process, bool gives) {
  std::set<uint64_t> counts;
  bool are_balanced = true;
  for (const auto& [other, issued] : all) {
    if (!issued.is_exact) return Ends::kUnknown;
    if (other == process || issued.Count(gives) == 0) continue;
    counts.insert(issued.Count(gives));
    are_balanced = are_balanced && issued.sends == issued.receives;
  }
  const Issued& mine = all.at(process);
  const Ends as_others =
      counts.size() == 1 ? Compare(mine.Count(gives), *counts.begin()) : Ends::kUnknown;
  if (as_others != Ends::kUnknown) return as_others;
  if (counts.empty() || !are_balanced) return Ends::kUnknown;
  return Compare(mine.Count(gives), mine.Count(!gives));
}

// A collective that a minority has not entered, and the waits of that minority for the majority.
struct Left {
  const StuckCall* collective = nullptr;
  std::vector<P2pPair> pairs;
  std::set<int32_t> inside;  // processes
};

std::optional<Left> FindLeft(const StuckCalls& calls, const std::vector<size_t>& cycle) {
  const std::vector<P2pPair> pairs = FindPairs(calls, cycle, kMostLeftPairs);
  for (const size_t i : cycle) {
    if (!IsLeftByFew(*calls[i]) || calls[i]->waiters.size() > kMostCompared) continue;
    Left left;
    left.collective = calls[i];
    for (const Waiter& waiter : calls[i]->waiters) left.inside.insert(waiter.process);
    for (const P2pPair& pair : pairs) {
      const bool is_outside =
          std::any_of(calls[i]->absents.begin(), calls[i]->absents.end(),
                      [&](const Absent& absent) { return absent.process == pair.waiter.process; });
      if (is_outside && left.inside.count(pair.absent.process) != 0) left.pairs.push_back(pair);
    }
    if (!left.pairs.empty()) return left;
  }
  return std::nullopt;
}

Ends JudgePair(const AllIssued& all, const P2pPair& pair) {
  const Op op = OpTowards(*pair.call->communicator, pair.waiter.rank, pair.absent.rank);
  if (op == Op::kNone) return Ends::kUnknown;
  return JudgeEnds(all, pair.absent.process, !IsSendSide(op));
}

std::string ExchangesInWords(const JobState& job, const AllIssued& all, const P2pPair& pair) {
  const Issued& issued = all.at(pair.absent.process);
  return absl::StrCat(RanksInWords({PublicRank(job, pair.absent.process, pair.absent.rank)}),
                      " has issued ", CountInWords(issued.sends, "send", "sends"), " and ",
                      CountInWords(issued.receives, "receive", "receives"));
}

std::optional<Verdict> BlameThePeer(const JobState& job, const StuckCalls& calls,
                                    const std::vector<size_t>& cycle, const AllIssued& all,
                                    const P2pPair& pair, int64_t now_ns, const Limits& limits) {
  auto verdict = JudgeUnmatchedP2p({job, *pair.call, {pair.absent}, now_ns, limits});
  if (!verdict) return verdict;
  AddWaitersOf(job, calls, cycle, &*verdict);
  verdict->evidence.push_back(
      absl::StrCat(ExchangesInWords(job, all, pair),
                   ", one less than the ranks that wait with it in another call"));
  return verdict;
}

std::optional<Verdict> BlameWhoLeft(const JobState& job, const Left& left, const AllIssued& all,
                                    int64_t now_ns, const Limits& limits) {
  Suspicion s{job, *left.collective, {}, now_ns, limits};
  for (const Absent& absent : left.collective->absents) {
    const bool waits_for_them =
        std::any_of(left.pairs.begin(), left.pairs.end(),
                    [&](const P2pPair& pair) { return pair.waiter.process == absent.process; });
    if (waits_for_them) s.absents.push_back(absent);
  }
  auto verdict = JudgeMissingRanks(s);
  if (!verdict) return verdict;
  verdict->divergence = DivergenceKind::kSkipped;
  const P2pPair& pair = left.pairs.front();
  verdict->evidence.push_back(absl::StrCat(
      RanksInWords({PublicRank(job, pair.waiter.process, pair.waiter.rank)}), " waits in ",
      OpInWords(pair.call->call.op), " for one of them: ", ExchangesInWords(job, all, pair),
      ", as many as the ranks that wait with it"));
  return verdict;
}

}  // namespace

std::optional<Verdict> JudgeLeftCollective(const JobState& job, const StuckCalls& calls,
                                           const std::vector<size_t>& cycle, int64_t now_ns,
                                           const Limits& limits) {
  const std::optional<Left> left = FindLeft(calls, cycle);
  if (!left) return std::nullopt;
  const AllIssued all = CountIssuedBy(job, left->inside);
  const P2pPair* lacking = nullptr;
  bool are_complete = true;
  for (const P2pPair& pair : left->pairs) {
    const Ends ends = JudgePair(all, pair);
    if (ends == Ends::kLacking && lacking == nullptr) lacking = &pair;
    are_complete = are_complete && ends == Ends::kComplete;
  }
  if (lacking == nullptr && !are_complete) return std::nullopt;
  auto verdict = lacking != nullptr ? BlameThePeer(job, calls, cycle, all, *lacking, now_ns, limits)
                                    : BlameWhoLeft(job, *left, all, now_ns, limits);
  if (!verdict) return verdict;
  verdict->certainty = std::min(verdict->certainty, Certainty::kLikely);
  verdict->missing_evidence.push_back(
      "which side has left out a call: the number of sends and receives of the others decides");
  return verdict;
}

}  // namespace rollcall
