// SPDX-License-Identifier: Apache-2.0
// JudgeLackingBatch(): ranks exchange messages in batches that repeat, and the batch of some of
// them lacks a send or receive that each of their batches before had.
#include <algorithm>
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

// The batches with the end before those that lack it; 0: the newest has it, or the end was in no
// habit.
size_t BatchesBeforeLack(const std::vector<Batch>& batches, size_t least, const End& end) {
  const auto has = [&](const Batch& batch) {
    return std::binary_search(batch.begin(), batch.end(), end);
  };
  size_t with = batches.size();
  while (with > 0 && !has(batches[with - 1])) --with;
  if (with == batches.size() || with < least) return 0;
  const Batch& usual = batches[with - 1];
  const Batch& lacking = batches[with];
  if (lacking.size() >= usual.size()) return 0;
  if (!std::includes(usual.begin(), usual.end(), lacking.begin(), lacking.end())) return 0;
  size_t equal = 0;
  while (equal < with && batches[with - 1 - equal] == usual) ++equal;
  // A pipeline ends each step with smaller batches.
  return equal == with && with >= least ? equal : 0;
}

struct Lacking {
  const P2pPair* pair = nullptr;
  CallArgs end;
  size_t batches = 0;
};

std::vector<Lacking> FindLacking(const std::vector<P2pPair>& pairs) {
  std::vector<Lacking> all;
  std::set<int32_t> known;
  for (const P2pPair& pair : pairs) {
    const Communicator& comm = *pair.call->communicator;
    const Member* member = FindMember(comm, pair.absent.rank);
    const Op op = OpTowards(comm, pair.waiter.rank, pair.absent.rank);
    if (member == nullptr || (op != Op::kSend && op != Op::kRecv)) continue;
    Lacking lacking;
    lacking.pair = &pair;
    lacking.end.op = op == Op::kSend ? Op::kRecv : Op::kSend;
    lacking.end.peer = pair.waiter.rank;
    const bool is_whole = !member->records.empty() && member->records.front().index == 0;
    lacking.batches =
        BatchesBeforeLack(FindBatches(*member), is_whole ? kLeastEqualBatches : kLeastOfManyBatches,
                          {lacking.end.op, lacking.end.peer});
    if (lacking.batches != 0 && known.insert(pair.absent.process).second) all.push_back(lacking);
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
  verdict->evidence.push_back(absl::StrCat(
      RanksInWords({PublicRank(job, absent.process, absent.rank)}), ": each of its last ",
      lacking.batches, " batches had ", EndInWords(lacking.end, CommunicatorInWords(job, comm)),
      ", and the next one had not"));
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
