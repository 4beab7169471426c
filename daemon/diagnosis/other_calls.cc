// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/other_calls.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "daemon/model/job_state.h"

namespace rollcall {
namespace {

// By process: when it entered its newest call on another communicator; 0: never.
using NewestCalls = std::unordered_map<int32_t, int64_t>;

// False: a culprit's process is not known, or has ended.
bool AddRanks(const Verdict& verdict, NewestCalls* newest) {
  for (const Culprit& culprit : verdict.culprits) {
    if (culprit.process < 0 || !culprit.ending.empty()) return false;
    newest->emplace(culprit.process, 0);
  }
  for (const int32_t process : verdict.waiting_processes) newest->emplace(process, 0);
  return !newest->empty();
}

void FindNewestCalls(const JobState& job, uint64_t but, NewestCalls* newest) {
  for (const auto& [id, comm] : job.communicators) {
    if (id == but) continue;
    for (const auto& [rank, member] : comm.members) {
      const auto at = newest->find(member.process);
      if (at == newest->end() || member.records.empty()) continue;
      at->second = std::max(at->second, member.records.back().entered_ns);
    }
  }
}

}  // namespace

void WeighOtherCalls(const JobState& job, Verdict* verdict) {
  if (verdict->communicator_kind != CommKind::kGloo || job.communicators.size() < 2) return;
  if (verdict->cause != Cause::kMissingRank && verdict->cause != Cause::kUnmatchedP2p) return;
  NewestCalls newest;
  if (!AddRanks(*verdict, &newest)) return;
  FindNewestCalls(job, verdict->communicator, &newest);
  int64_t all_until_ns = INT64_MAX;
  for (const auto& [process, entered_ns] : newest) {
    all_until_ns = std::min(all_until_ns, entered_ns);
  }
  if (all_until_ns <= verdict->since_ns) return;
  verdict->counts_from_ns = std::max(verdict->counts_from_ns, all_until_ns);
  verdict->certainty = std::min(verdict->certainty, Certainty::kLikely);
  verdict->missing_evidence.push_back(
      "whether the program waits: all these ranks have made other calls meanwhile");
}

}  // namespace rollcall
