// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>

#include "daemon/rules/claimed_sizes.h"
#include "daemon/rules/rules.h"
#include "daemon/words/rank_ranges.h"

namespace rollcall {
namespace {

// Tells a rank that has joined with another size from one that has not joined.
void AddSizes(const Suspicion& s, Verdict* verdict) {
  const SizeDispute dispute = JudgeClaimedSizes(*s.call.communicator);
  if (dispute.size == 0) return;
  verdict->communicator_size = dispute.size;
  std::unordered_map<int32_t, int32_t> claims;  // by process; of its first rank
  for (const ClaimedSize& wrong : dispute.wrong) {
    const Member* member = FindMember(*s.call.communicator, wrong.rank);
    if (member != nullptr && member->process >= 0) claims.emplace(member->process, wrong.size);
  }
  bool all = true;
  for (Culprit& culprit : verdict->culprits) {
    const auto claim = claims.find(culprit.process);
    all = all && claim != claims.end();
    if (claim == claims.end()) continue;
    culprit.call = s.call.call;
    culprit.call.count = static_cast<uint64_t>(claim->second);
  }
  if (all) verdict->mismatched_fields = {"size"};
}

// What NCCL returned to the culprits, if it refused their creating calls.
void AddRefusals(const Suspicion& s, Verdict* verdict) {
  const Communicator& comm = *s.call.communicator;
  std::unordered_map<int32_t, uint8_t> results;  // by process
  for (const auto& [rank, member] : comm.members) {
    if (member.state == MemberState::kFailed) results[member.process] = member.async_error;
  }
  for (Culprit& culprit : verdict->culprits) {
    const auto refused = results.find(culprit.process);
    if (culprit.process >= 0 && refused != results.end()) {
      culprit.is_refused = true;
      culprit.nccl_result = refused->second;
    }
    for (const Rival& rival : comm.rivals) {
      if (rival.process != culprit.process || !rival.is_refused) continue;
      culprit.is_refused = true;
      culprit.nccl_result = rival.nccl_result;
    }
  }
}

// Two processes that have one rank, and the ranks that no process has.
void AddOneRank(const Suspicion& s, Verdict* verdict) {
  const Communicator& comm = *s.call.communicator;
  if (comm.rivals.empty()) return;
  verdict->is_one_rank = true;
  verdict->claimed_rank = comm.rivals.begin()->rank;
  const RankRanges unclaimed(UnknownRanks(comm));
  if (!unclaimed.empty()) verdict->unclaimed = unclaimed.InWords();
}

}  // namespace

std::optional<Verdict> JudgeIncompleteCreation(const Suspicion& s) {
  if (s.call.kind != StuckCall::Kind::kCreation) return std::nullopt;
  std::optional<Verdict> verdict = BlameNotHeldUp(
      s, Cause::kInitIncomplete,
      Pick(s, [](const Absent& a) { return a.disagrees || (a.gone == Gone::kNo && !a.silent); }));
  if (!verdict) return verdict;
  AddSizes(s, &*verdict);
  AddRefusals(s, &*verdict);
  AddOneRank(s, &*verdict);
  return verdict;
}

}  // namespace rollcall
