// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/losses.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/model/progress.h"
#include "daemon/words/terms.h"
#include "interpose/segment.h"

namespace rollcall {
namespace {

struct Loss {
  uint64_t ProcessEvidence::* count;
  uint64_t bits;  // of the count, one of which must be set
  const char* words;
};

constexpr uint64_t kAny = UINT64_MAX;

constexpr Loss kLosses[] = {
    {&ProcessEvidence::lost_communicators, kAny,
     "Rollcall had no room to record some communicators of "},
    {&ProcessEvidence::unknown_comm_calls, kAny,
     "Rollcall did not see the creation of some communicators of "},
    {&ProcessEvidence::lost_threads, kAny,
     "Rollcall does not see the current calls of some threads of "},
    {&ProcessEvidence::left_out, segment::kLeftOutRecords,
     "Rollcall had room for only the newest calls of "},
    {&ProcessEvidence::left_out, segment::kLeftOutRings,
     "Rollcall had no room to record the calls on some communicators of "},
    {&ProcessEvidence::lost_graph_calls, kAny,
     "Rollcall cannot follow the launches of some CUDA graphs of "},
};

// Its process may be in the verdict's communicator without being seen there.
bool MayBeUnseen(const JobState& job, const Verdict& verdict, const Culprit& culprit) {
  const Process* process = FindProcess(job, culprit.process);
  if (process == nullptr) return false;
  if (process->lost_communicators == 0 && process->unknown_comm_calls == 0) return false;
  const auto comm = job.communicators.find(verdict.communicator);
  if (comm == job.communicators.end()) return false;
  const auto& members = comm->second.members;
  return std::none_of(members.begin(), members.end(), [&](const auto& member) {
    return member.second.process == culprit.process;
  });
}

// What it lost makes a claim that it has not made a call, or does not wait, less sure.
bool MayHaveCalled(const JobState& job, const Culprit& culprit) {
  const Process* process = FindProcess(job, culprit.process);
  return process != nullptr && (process->lost_threads != 0 || process->lost_graph_calls != 0);
}

// Shown by the end of a process, its host or an error: that rests on no record of a call.
bool RestsOnAnEnd(Cause cause) {
  return cause == Cause::kRankDied || cause == Cause::kRankExited || cause == Cause::kHostLost ||
         cause == Cause::kNcclError;
}

// Short rings are the rule in small containers, and agents mostly read them in time.
bool Bears(const Loss& loss, const Verdict& verdict) {
  if (loss.count != &ProcessEvidence::left_out || loss.bits != segment::kLeftOutRecords) return true;
  return verdict.call.op == Op::kNone || verdict.position_end != 0;
}

Certainty Most(const JobState& job, const Verdict& verdict) {
  Certainty most = Certainty::kCertain;
  if (IsContradiction(verdict.cause)) return most;
  for (const Culprit& culprit : verdict.culprits) {
    if (MayBeUnseen(job, verdict, culprit)) return Certainty::kPossible;
    if (MayHaveCalled(job, culprit)) most = Certainty::kLikely;
  }
  return most;
}

}  // namespace

void AddLosses(const JobState& job, Verdict* verdict) {
  if (RestsOnAnEnd(verdict->cause)) return;
  std::array<std::vector<int32_t>, std::size(kLosses)> ranks;
  const auto add = [&](int32_t process, int32_t rank) {
    const Process* known = FindProcess(job, process);
    if (known == nullptr) return;
    for (size_t i = 0; i < ranks.size(); ++i) {
      if ((known->*kLosses[i].count & kLosses[i].bits) != 0) ranks[i].push_back(rank);
    }
  };
  for (const Culprit& culprit : verdict->culprits) add(culprit.process, culprit.rank);
  const size_t waiting = std::min(verdict->waiting_processes.size(), verdict->waiting_ranks.size());
  for (size_t i = 0; i < waiting; ++i) {
    add(verdict->waiting_processes[i], verdict->waiting_ranks[i]);
  }
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i].empty() || !Bears(kLosses[i], *verdict)) continue;
    verdict->missing_evidence.push_back(absl::StrCat(kLosses[i].words, RanksInWords(ranks[i])));
  }
  verdict->certainty = std::min(verdict->certainty, Most(job, *verdict));
}

}  // namespace rollcall
