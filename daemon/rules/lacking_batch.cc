// SPDX-License-Identifier: Apache-2.0
// JudgeLackingBatch(): ranks exchange messages in batches that repeat, and the batch of some of
// them lacks a send or receive that each of their batches before had.
#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/model/progress.h"
#include "daemon/rules/p2p_pairs.h"
#include "daemon/rules/rules.h"
#include "daemon/words/communicator_names.h"
#include "daemon/words/evidence.h"
#include "daemon/words/sentence_parts.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

constexpr size_t kLeastEqualBatches = 5;
constexpr size_t kLeastOfManyBatches = 20;  // where older ones are lost
constexpr size_t kMostBatchPairs = 64;
constexpr size_t kLongestPeriodOfBatches = 8;
constexpr size_t kLeastPeriods = 3;

using End = std::pair<Op, int32_t>;  // and its peer
using Batch = std::vector<End>;      // in order

// The groups of sends and receives of a member; none if a record between them is lost.
std::vector<Batch> FindBatches(const Member& member) {
  std::vector<Batch> batches;
  const CallRecord* last = nullptr;
  uint64_t next = 0;
  for (const CallRecord& record : member.records) {
    if (next != 0 && record.index != next) return {};
    next = record.index + 1;
    if (OpKind(record.args.op) != CallKind::kP2p || !Happens(record)) continue;
    const bool joins = !batches.empty() && last != nullptr && record.group != 0 &&
                       record.group == last->group && record.thread == last->thread;
    if (!joins) batches.emplace_back();
    batches.back().emplace_back(record.args.op, record.args.peer);
    last = &record;
  }
  for (Batch& batch : batches) std::sort(batch.begin(), batch.end());
  return batches;
}

// The batches before the first one that lacks an end.
struct Before {
  size_t batches = 0;  // 0 if none lacks it, or it was in no habit
  size_t period = 1;   // after so many batches they repeat
};

// A pipeline ends each step with smaller batches, and a rank may meet its neighbours in turn: only
// where all batches before repeat, one that is smaller than it should be lacks something.
Before BatchesBeforeLack(const std::vector<Batch>& batches, size_t least, const End& end) {
  const auto has = [&](const Batch& batch) {
    return std::binary_search(batch.begin(), batch.end(), end);
  };
  for (size_t period = 1; period <= kLongestPeriodOfBatches; ++period) {
    size_t n = period;
    while (n < batches.size() && batches[n] == batches[n - period]) ++n;
    if (n >= batches.size() || n < std::max(least, kLeastPeriods * period)) continue;
    const Batch& usual = batches[n - period];
    const Batch& lacking = batches[n];
    const bool is_part = lacking.size() < usual.size() &&
                         std::includes(usual.begin(), usual.end(), lacking.begin(), lacking.end());
    const auto first = batches.begin() + static_cast<std::ptrdiff_t>(n);
    if (is_part && has(usual) && std::none_of(first, batches.end(), has)) return {n, period};
  }
  return {};
}

// Whether the rank waits in such a message with the peer: one that its GPU has not finished;
// without markers, one of its newest batch.
bool HasOpen(const Member& member, int32_t peer, Op op) {
  const uint64_t open = member.p2p_entered - std::min(member.p2p_entered, member.p2p_finished);
  const CallRecord* newest = nullptr;
  uint64_t after = 0;
  for (size_t i = member.records.size(); i-- > 0;) {
    const CallRecord& record = member.records[i];
    if (OpKind(record.args.op) != CallKind::kP2p || !Happens(record)) continue;
    if (newest == nullptr) newest = &record;
    const bool is_of_newest =
        &record == newest || (record.group != 0 && record.group == newest->group);
    if (member.has_markers ? ++after > open : !is_of_newest) break;
    if (record.args.peer == peer && record.args.op == op) return true;
  }
  return false;
}

struct Lacking {
  const P2pPair* pair = nullptr;
  CallArgs end;
  Before before;
};

// An end that the pair's waiting rank waits for, and that the newest batches of the other one lack.
std::optional<Lacking> FindLackingEnd(const P2pPair& pair) {
  const Communicator& comm = *pair.call->communicator;
  const Member* waiter = FindMember(comm, pair.waiter.rank);
  const Member* absent = FindMember(comm, pair.absent.rank);
  if (waiter == nullptr || absent == nullptr) return std::nullopt;
  const bool is_whole = !absent->records.empty() && absent->records.front().index == 0;
  const std::vector<Batch> batches = FindBatches(*absent);
  for (const auto& [mine, theirs] :
       {std::pair(Op::kSend, Op::kRecv), std::pair(Op::kRecv, Op::kSend)}) {
    if (!HasOpen(*waiter, pair.absent.rank, mine)) continue;
    Lacking lacking;
    lacking.pair = &pair;
    lacking.end.op = theirs;
    lacking.end.peer = pair.waiter.rank;
    lacking.before = BatchesBeforeLack(batches, is_whole ? kLeastEqualBatches : kLeastOfManyBatches,
                                       {theirs, pair.waiter.rank});
    if (lacking.before.batches != 0) return lacking;
  }
  return std::nullopt;
}

std::vector<Lacking> FindLacking(const std::vector<P2pPair>& pairs) {
  std::vector<Lacking> all;
  std::set<int32_t> known;
  for (const P2pPair& pair : pairs) {
    const std::optional<Lacking> lacking = FindLackingEnd(pair);
    if (lacking && known.insert(pair.absent.process).second) all.push_back(*lacking);
  }
  std::stable_sort(all.begin(), all.end(), [](const Lacking& a, const Lacking& b) {
    return a.pair->waiter.wait.since_ns < b.pair->waiter.wait.since_ns;
  });
  return all;
}

void AddLacking(const JobState& job, const Lacking& lacking, Verdict* verdict) {
  const Absent& absent = lacking.pair->absent;
  const Communicator& comm = *lacking.pair->call->communicator;
  const bool is_named =
      std::any_of(verdict->culprits.begin(), verdict->culprits.end(),
                  [&](const Culprit& culprit) { return culprit.process == absent.process; });
  if (!is_named) {
    verdict->culprits.push_back(
        MakeCulprit(job, absent.process, absent.rank, FindMember(comm, absent.rank)));
  }
  const Before& before = lacking.before;
  const std::string each =
      before.period == 1
          ? absl::StrCat("each of its last ", before.batches, " batches")
          : absl::StrCat("one in ", before.period, " of its last ", before.batches, " batches");
  verdict->evidence.push_back(absl::StrCat(
      RanksInWords({PublicRank(job, absent.process, absent.rank)}), ": ", each, " had ",
      EndInWords(lacking.end, CommunicatorInWords(job, comm)), ", and the next one had not"));
}

}  // namespace

std::optional<Verdict> JudgeLackingBatch(const JobState& job, const StuckCalls& calls,
                                         const std::vector<size_t>& cycle, int64_t now_ns,
                                         const Limits& limits) {
  const std::vector<P2pPair> pairs = FindPairs(calls, cycle, kMostBatchPairs);
  const std::vector<Lacking> all = FindLacking(pairs);
  if (all.empty()) return std::nullopt;
  const P2pPair& first = *all.front().pair;
  auto verdict = JudgeUnmatchedP2p({job, *first.call, {first.absent}, now_ns, limits});
  if (!verdict) return verdict;
  verdict->certainty = std::min(verdict->certainty, Certainty::kLikely);
  for (const Lacking& lacking : all) AddLacking(job, lacking, &*verdict);
  AddWaitersOf(job, calls, cycle, &*verdict);
  verdict->missing_evidence.push_back(
      "which of both ends is wrong: the batches that the ranks made before decide");
  return verdict;
}

}  // namespace rollcall
