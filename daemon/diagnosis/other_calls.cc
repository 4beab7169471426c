// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/other_calls.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "daemon/model/job_state.h"
#include "daemon/model/progress.h"

namespace rollcall {
namespace {

// For each process, when it entered its newest call on another communicator; 0 if never.
using NewestCalls = std::unordered_map<int32_t, int64_t>;

// False if a culprit's process is not known, or has ended.
bool AddRanks(const Verdict& verdict, NewestCalls* newest) {
  for (const Culprit& culprit : verdict.culprits) {
    if (culprit.process < 0 || !culprit.ending.empty()) return false;
    newest->emplace(culprit.process, 0);
  }
  for (const int32_t process : verdict.waiting_processes) newest->emplace(process, 0);
  return !newest->empty();
}

// When the rank entered the newest call that its GPU has finished; 0 if unknown. A call of NCCL
// that has returned may only be queued.
int64_t NewestFinished(const Member& member) {
  if (!member.has_markers || member.finished == 0) return 0;
  const CallRecord* record = FindCollective(member, member.finished - 1);
  return record == nullptr ? 0 : record->entered_ns;
}

bool AllGoOn(const JobState& job, const Verdict& verdict, NewestCalls newest) {
  for (const auto& [id, comm] : job.communicators) {
    if (id == verdict.communicator) continue;
    for (const auto& [rank, member] : comm.members) {
      const auto at = newest.find(member.process);
      if (at != newest.end()) at->second = std::max(at->second, NewestFinished(member));
    }
  }
  return !newest.empty() && std::all_of(newest.begin(), newest.end(), [&](const auto& one) {
    return one.second > verdict.since_ns;
  });
}

// True if each culprit has entered calls on other communicators since the wait began, and its GPU
// has finished them, while the others stand: it goes on, and may come. A job whose ranks all go on
// has left the call behind.
bool OnlyCulpritsGoOn(const JobState& job, const Verdict& verdict) {
  NewestCalls culprits, waiting;
  for (const Culprit& culprit : verdict.culprits) {
    if (culprit.process < 0 || !culprit.ending.empty()) return false;
    culprits.emplace(culprit.process, 0);
  }
  for (const int32_t process : verdict.waiting_processes) waiting.emplace(process, 0);
  return AllGoOn(job, verdict, std::move(culprits)) && !AllGoOn(job, verdict, std::move(waiting));
}

void WeighCallsInOrder(const JobState& job, Verdict* verdict) {
  // The cost counts: a job may have thousands of consequences.
  if (verdict->cause != Cause::kMissingRank || verdict->is_consequence) return;
  if (!OnlyCulpritsGoOn(job, *verdict)) return;
  verdict->certainty = std::min(verdict->certainty, Certainty::kLikely);
  verdict->missing_evidence.push_back(
      "whether they will come: they finish calls on other communicators meanwhile");
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
  if (job.communicators.size() < 2) return;
  if (verdict->communicator_kind == CommKind::kStore) return;
  if (HoldsUpOtherCalls(verdict->communicator_kind)) return WeighCallsInOrder(job, verdict);
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
