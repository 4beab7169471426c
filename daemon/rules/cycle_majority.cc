// SPDX-License-Identifier: Apache-2.0
// JudgeCycleByMajority(): several ranks wait for ends of sends and receives that no rank has
// issued. One rank that is wrong explains all of them if it alone sends to (or receives from) ranks
// that wait together in a collective, if it has left its peers for a collective, if it stands
// between two peers, of which one sends it more and the other one expects more from it than it
// handles, if it alone in a ring sends to (or receives from) another neighbour, or if it alone
// sends a rank fewer messages of a tag than the others do, or messages with another tag.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/model/progress.h"
#include "daemon/rules/blame.h"
#include "daemon/rules/p2p_pairs.h"
#include "daemon/rules/rules.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

constexpr size_t kMostCycleCalls = 256;  // of a cycle
constexpr size_t kMostPairs = 4096;
constexpr size_t kLeastPeers = 2;
constexpr size_t kNamedPeers = 4;
constexpr int32_t kSmallestRing = 4;

// The ranks that wait for ends which one process has not issued.
struct Lackers {
  // process -> the send or receive with that process in which it waits
  std::map<int32_t, Op> calls;
  const P2pPair* earliest = nullptr;
};

std::map<int32_t, Lackers> FindLackers(const std::vector<P2pPair>& pairs) {
  std::map<int32_t, Lackers> by_absent;
  for (const P2pPair& pair : pairs) {
    Lackers& lackers = by_absent[pair.absent.process];
    lackers.calls.emplace(pair.waiter.process,
                          OpTowards(*pair.call->communicator, pair.waiter.rank, pair.absent.rank));
    const bool is_earlier = lackers.earliest == nullptr ||
                            pair.waiter.wait.since_ns < lackers.earliest->waiter.wait.since_ns;
    if (is_earlier) lackers.earliest = &pair;
  }
  return by_absent;
}

// The sends and receives, and the creations of communicators for them, that each process waits in.
using MessageWaits = std::unordered_map<int32_t, std::vector<const StuckCall*>>;

MessageWaits FindMessageWaits(const StuckCalls& calls, const std::map<int32_t, Lackers>& lacked) {
  MessageWaits waits;
  for (const StuckCall* call : calls) {
    if (call->kind != StuckCall::Kind::kP2p && !IsPairCreation(*call)) continue;
    for (const Waiter& waiter : call->waiters) {
      if (lacked.count(waiter.process) != 0) waits[waiter.process].push_back(call);
    }
  }
  return waits;
}

// True if one peer sends to the rank, another one receives from it, and the rank waits for one of
// them: it stands between two peers that agree on what flows through it. Where all peers send
// first, or all receive first, every rank is as wrong as the others.
bool StandsBetween(const std::vector<const StuckCall*>& waits, const Lackers& lackers) {
  const auto any = [&](bool sends) {
    return std::any_of(lackers.calls.begin(), lackers.calls.end(), [sends](const auto& lacker) {
      return lacker.second != Op::kNone && IsSendSide(lacker.second) == sends;
    });
  };
  const auto is_lacker = [&](const Absent& a) { return lackers.calls.count(a.process) != 0; };
  const bool is_mutual = std::any_of(waits.begin(), waits.end(), [&](const StuckCall* call) {
    return call->kind == StuckCall::Kind::kP2p &&
           std::any_of(call->absents.begin(), call->absents.end(), is_lacker);
  });
  return any(true) && any(false) && is_mutual;
}

// The one process for which several ranks wait, if it explains their waits, or -1.
int32_t FindLacked(const StuckCalls& calls, const std::map<int32_t, Lackers>& by_absent) {
  const MessageWaits waits = FindMessageWaits(calls, by_absent);
  int32_t lacked = -1;
  for (const auto& [process, lackers] : by_absent) {
    if (lackers.calls.size() < kLeastPeers) continue;
    const auto own = waits.find(process);
    if (own != waits.end() && !StandsBetween(own->second, lackers)) continue;
    if (lacked >= 0) return -1;
    lacked = process;
  }
  return lacked;
}

// True if all peers of the call wait in one collective, which lacks the rank that waits in the
// call.
bool IsAlone(const StuckCalls& calls, const std::vector<size_t>& cycle, const StuckCall& p2p) {
  if (p2p.waiters.size() != 1 || p2p.absents.size() < kLeastPeers) return false;
  const int32_t process = p2p.waiters.front().process;
  return std::any_of(cycle.begin(), cycle.end(), [&](size_t i) {
    const StuckCall& call = *calls[i];
    if (call.kind != StuckCall::Kind::kCollective) return false;
    const bool lacks = std::any_of(call.absents.begin(), call.absents.end(),
                                   [&](const Absent& a) { return a.process == process; });
    if (!lacks) return false;
    std::set<int32_t> together;
    for (const Waiter& waiter : call.waiters) together.insert(waiter.process);
    return std::all_of(p2p.absents.begin(), p2p.absents.end(), [&](const Absent& absent) {
      return absent.lack == Lack::kNotEntered && together.count(absent.process) != 0;
    });
  });
}

void AddReason(const std::string& reason, int32_t rank, Verdict* verdict) {
  verdict->certainty = std::min(verdict->certainty, Certainty::kLikely);
  verdict->evidence.push_back(reason);
  verdict->missing_evidence.push_back(absl::StrCat("which ranks are wrong: that ",
                                                   RanksInWords({rank}),
                                                   " is, explains what the others wait for"));
}

std::vector<int32_t> PublicRanksOf(const JobState& job, const Lackers& lackers) {
  std::vector<int32_t> ranks;
  for (const auto& [process, op] : lackers.calls) {
    ranks.push_back(PublicRank(job, process, -1));
    if (ranks.size() == kNamedPeers) break;
  }
  return ranks;
}

// One rank sends to, or receives from, ranks that wait together elsewhere.
std::optional<Verdict> JudgeLoneRank(const JobState& job, const StuckCalls& calls,
                                     const std::vector<size_t>& cycle, int64_t now_ns,
                                     const Limits& limits) {
  const auto alone = std::find_if(cycle.begin(), cycle.end(), [&](size_t i) {
    return calls[i]->kind == StuckCall::Kind::kP2p && IsAlone(calls, cycle, *calls[i]);
  });
  if (alone == cycle.end()) return std::nullopt;
  const StuckCall& call = *calls[*alone];
  const P2pPair pair = {&call, call.waiters.front(), call.absents.front()};
  auto verdict = BlameWaiter(job, pair, call.call, calls, cycle, now_ns, limits);
  if (!verdict) return verdict;
  const int32_t rank = PublicRank(job, pair.waiter.process, pair.waiter.rank);
  AddReason(absl::StrCat(RanksInWords({rank}), " alone has issued ", OpInWords(call.call.op),
                         "; its ", call.absents.size(), " peers wait together in another call"),
            rank, &*verdict);
  return verdict;
}

// Several ranks wait for one.
std::optional<Verdict> JudgeLackedRank(const JobState& job, const StuckCalls& calls,
                                       const std::vector<size_t>& cycle, int64_t now_ns,
                                       const Limits& limits) {
  std::vector<size_t> all(calls.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  const std::vector<P2pPair> pairs = FindPairs(calls, all, kMostPairs);
  if (pairs.size() == kMostPairs) return std::nullopt;
  const std::map<int32_t, Lackers> by_absent = FindLackers(pairs);
  const int32_t lacked = FindLacked(calls, by_absent);
  const bool is_party =
      std::any_of(cycle.begin(), cycle.end(), [&](size_t i) { return WaitsIn(*calls[i], lacked); });
  if (lacked < 0 || !is_party) return std::nullopt;
  const P2pPair& pair = *by_absent.at(lacked).earliest;
  auto verdict = JudgeUnmatchedP2p({job, *pair.call, {pair.absent}, now_ns, limits});
  if (!verdict) return verdict;
  AddWaitersOf(job, calls, cycle, &*verdict);
  const int32_t rank = PublicRank(job, lacked, pair.absent.rank);
  AddReason(absl::StrCat(RanksInWords(PublicRanksOf(job, by_absent.at(lacked))),
                         " wait for sends or receives of ", RanksInWords({rank}),
                         ", which it has not issued"),
            rank, &*verdict);
  return verdict;
}

// How far above its own rank the only peer of a member is to which it sends (or from which it
// receives), around the ring. 0: it has none, or several.
int32_t DistanceToPeer(const Communicator& comm, int32_t rank, const Member& member, bool sends) {
  int32_t distance = 0;
  for (const PeerTraffic& with : member.traffic) {
    if ((sends ? with.sends : with.receives) == 0) continue;
    if (distance != 0) return 0;
    distance = (with.peer - rank + comm.size) % comm.size;
  }
  return distance;
}

// The distance that all ranks but this one have in common, or 0.
int32_t DistanceOfOthers(const Communicator& comm, int32_t rank, bool sends) {
  if (comm.size < kSmallestRing || comm.members.size() != static_cast<size_t>(comm.size)) return 0;
  int32_t common = 0;
  for (const auto& [other, member] : comm.members) {
    if (other == rank) continue;
    const int32_t distance = DistanceToPeer(comm, other, member, sends);
    if (distance == 0 || (common != 0 && distance != common)) return 0;
    common = distance;
  }
  return common;
}

// The rank waits for another peer than its place in the ring gives it.
bool HasAnotherNeighbour(const StuckCall& call) {
  if (call.kind != StuckCall::Kind::kP2p || call.waiters.size() != 1) return false;
  const Communicator& comm = *call.communicator;
  const int32_t rank = call.waiters.front().rank;
  const Member* member = FindMember(comm, rank);
  if (member == nullptr || call.absents.size() != 1) return false;
  const bool sends = IsSendSide(call.call.op);
  const int32_t own = DistanceToPeer(comm, rank, *member, sends);
  const int32_t others = DistanceOfOthers(comm, rank, sends);
  return own != 0 && others != 0 && own != others;
}

std::optional<Verdict> JudgeWrongNeighbour(const JobState& job, const StuckCalls& calls,
                                           const std::vector<size_t>& cycle, int64_t now_ns,
                                           const Limits& limits) {
  const auto wrong = std::find_if(cycle.begin(), cycle.end(),
                                  [&](size_t i) { return HasAnotherNeighbour(*calls[i]); });
  if (wrong == cycle.end()) return std::nullopt;
  const StuckCall& call = *calls[*wrong];
  const P2pPair pair = {&call, call.waiters.front(), call.absents.front()};
  auto verdict = BlameWaiter(job, pair, call.call, calls, cycle, now_ns, limits);
  if (!verdict) return verdict;
  const int32_t rank = PublicRank(job, pair.waiter.process, pair.waiter.rank);
  const bool sends = IsSendSide(call.call.op);
  const int32_t distance = DistanceOfOthers(*call.communicator, pair.waiter.rank, sends);
  AddReason(absl::StrCat(RanksInWords({rank}), sends ? " sends to " : " receives from ",
                         RanksInWords({PublicRank(job, pair.absent.process, pair.absent.rank)}),
                         ", and each other rank ", sends ? "sends to" : "receives from",
                         " the one that is ", distance, " above its own in the ring of ",
                         call.communicator->size),
            rank, &*verdict);
  return verdict;
}

std::optional<Verdict> JudgeOddSender(const JobState& job, const StuckCalls& calls,
                                      const std::vector<size_t>& cycle, int64_t now_ns,
                                      const Limits& limits) {
  for (const size_t i : cycle) {
    const StuckCall& call = *calls[i];
    const Absent* odd = FindOddSender(call);
    if (odd == nullptr) continue;
    auto verdict = JudgeUnmatchedP2p({job, call, {*odd}, now_ns, limits});
    if (!verdict) continue;
    AddWaitersOf(job, calls, cycle, &*verdict);
    const int32_t rank = PublicRank(job, odd->process, odd->rank);
    AddReason(absl::StrCat(RanksInWords({rank}),
                           " alone has not sent the message that is awaited; the other senders "
                           "have sent theirs with its tag"),
              rank, &*verdict);
    return verdict;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Verdict> JudgeCycleByMajority(const JobState& job, const StuckCalls& calls,
                                            const std::vector<size_t>& cycle, int64_t now_ns,
                                            const Limits& limits) {
  if (cycle.size() > kMostCycleCalls) return std::nullopt;
  auto verdict = JudgeOddSender(job, calls, cycle, now_ns, limits);
  if (!verdict) verdict = JudgeLoneRank(job, calls, cycle, now_ns, limits);
  if (!verdict) verdict = JudgeWrongNeighbour(job, calls, cycle, now_ns, limits);
  return verdict ? verdict : JudgeLackedRank(job, calls, cycle, now_ns, limits);
}

}  // namespace rollcall
