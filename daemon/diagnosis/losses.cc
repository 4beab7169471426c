// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/losses.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/diagnosis/members_by_process.h"
#include "daemon/model/progress.h"
#include "daemon/words/terms.h"
#include "interpose/segment.h"

namespace rollcall {
namespace {

struct Loss {
  uint64_t ProcessEvidence::* count;
  uint64_t bits;  // the loss occurred if one of these bits of the count is set
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
    {&ProcessEvidence::left_out, segment::kLeftOutNetwork,
     "Rollcall had no room to record what the transfers over the network wait for of "},
    {&ProcessEvidence::lost_graph_calls, kAny,
     "Rollcall cannot follow the launches of some CUDA graphs of "},
};

// True if the culprit's process may have joined communicators unrecorded.
bool MayHaveJoinedUnseen(const JobState& job, const Culprit& culprit) {
  const Process* process = FindProcess(job, culprit.process);
  if (process == nullptr) return false;
  return process->lost_communicators != 0 || process->unknown_comm_calls != 0;
}

// True if the culprit may have made the call, or may wait, unrecorded.
bool MayHaveCalled(const JobState& job, const Culprit& culprit) {
  const Process* process = FindProcess(job, culprit.process);
  return process != nullptr && (process->lost_threads != 0 || process->lost_graph_calls != 0);
}

// True if the verdict rests on the end of a process, a silent host or an error, and not on
// the record of a call.
bool RestsOnAnEnd(Cause cause) {
  return cause == Cause::kRankDied || cause == Cause::kRankExited || cause == Cause::kHostLost ||
         cause == Cause::kNcclError;
}

// Small containers have short rings, and agents usually read them in time. So a short ring
// is missing evidence only if a record is missing. Transfers explain a call of NCCL that all have
// entered, and no other.
bool Bears(const Loss& loss, const Verdict& verdict) {
  if (loss.count != &ProcessEvidence::left_out) return true;
  if (loss.bits == segment::kLeftOutNetwork) {
    return verdict.cause == Cause::kStalledInFlight && verdict.communicator_kind == CommKind::kNccl;
  }
  if (loss.bits != segment::kLeftOutRecords) return true;
  return verdict.call.op == Op::kNone || verdict.position_end != 0;
}

Certainty Most(const JobState& job, const Verdict& verdict) {
  Certainty most = Certainty::kCertain;
  if (IsContradiction(verdict.cause)) return most;
  const auto comm = job.communicators.find(verdict.communicator);
  std::optional<MembersByProcess> members;  // of `comm`; made at its first use
  for (const Culprit& culprit : verdict.culprits) {
    if (comm != job.communicators.end() && MayHaveJoinedUnseen(job, culprit)) {
      if (!members) members.emplace(comm->second);
      if (members->Find(culprit.process) == nullptr) return Certainty::kPossible;
    }
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

void AddForbiddenStacks(const JobState& job, Verdict* verdict) {
  std::map<std::string, std::vector<int32_t>> ranks;  // by what has switched their stacks off
  for (const Culprit& culprit : verdict->culprits) {
    const Process* process = FindProcess(job, culprit.process);
    if (process == nullptr || process->stacks_off.empty() || HasEnded(*process)) continue;
    ranks[process->stacks_off].push_back(culprit.rank);
  }
  for (const auto& [what, off] : ranks) {
    verdict->missing_evidence.push_back(
        absl::StrCat("the stacks of ", RanksInWords(off), " are switched off (", what, ")"));
  }
}

}  // namespace rollcall
