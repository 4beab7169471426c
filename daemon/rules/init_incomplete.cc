// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>
#include <vector>

#include "daemon/rules/claimed_sizes.h"
#include "daemon/rules/rules.h"
#include "daemon/words/evidence.h"
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

// PyTorch's gloo group of all ranks. Its size is a part of its id, so ranks that got another size
// are in a group of their own.
constexpr char kWorld[] = "default_pg";

bool IsIncompleteWorld(const Communicator& comm) {
  return comm.kind == CommKind::kGloo && comm.name == kWorld &&
         comm.members.size() < static_cast<size_t>(std::max(comm.size, 0));
}

// No process and no rank of one is in the other: it lacks exactly such ranks.
bool Complement(const Communicator& one, const Communicator& other) {
  return std::none_of(one.members.begin(), one.members.end(), [&](const auto& in_one) {
    return std::any_of(other.members.begin(), other.members.end(), [&](const auto& in_other) {
      return in_one.first == in_other.first || in_one.second.process == in_other.second.process;
    });
  });
}

bool IsAnyAlive(const JobState& job, const Communicator& comm) {
  return std::any_of(comm.members.begin(), comm.members.end(), [&](const auto& member) {
    return HowGone(job, member.second) == Gone::kNo &&
           member.second.state != MemberState::kDestroyed;
  });
}

// The group of those that got another size and lack these ranks; nullptr if there is none.
const Communicator* FindOtherWorld(const JobState& job, const Communicator& comm) {
  if (!IsIncompleteWorld(comm)) return nullptr;
  const auto other =
      std::find_if(job.communicators.begin(), job.communicators.end(), [&](const auto& entry) {
        const Communicator& c = entry.second;
        return IsIncompleteWorld(c) && c.size != comm.size && Complement(comm, c) &&
               IsAnyAlive(job, c);
      });
  return other == job.communicators.end() ? nullptr : &other->second;
}

void SetWaiting(const Communicator& comm, Verdict* verdict) {
  verdict->waiting_ranks.clear();
  verdict->waiting_processes.clear();
  for (const auto& [rank, member] : comm.members) {
    verdict->waiting_ranks.push_back(rank);
    verdict->waiting_processes.push_back(member.process);
  }
}

// The fewer are wrong. None if both sides have as many.
void AddOtherWorld(const Suspicion& s, Verdict* verdict) {
  const Communicator& own = *s.call.communicator;
  const Communicator* other = FindOtherWorld(s.job, own);
  if (other == nullptr || other->members.size() == own.members.size()) return;
  const bool others_are_wrong = other->members.size() < own.members.size();
  const Communicator& wrong = others_are_wrong ? *other : own;
  const Communicator& right = others_are_wrong ? own : *other;
  verdict->culprits.clear();
  for (const auto& [rank, member] : wrong.members) {
    Culprit culprit = MakeCulprit(s.job, member.process, rank, &member);
    culprit.call = s.call.call;
    culprit.call.count = static_cast<uint64_t>(wrong.size);
    verdict->culprits.push_back(culprit);
  }
  SetWaiting(right, verdict);
  SetCommunicator(s.job, right, verdict);
  verdict->communicator_size = right.size;
  verdict->mismatched_fields = {"size"};
  verdict->certainty = std::min(verdict->certainty, Certainty::kLikely);
  verdict->missing_evidence = {"which size is right: that of the larger side is the likelier one"};
}

// Each rank of the job has a process that lives, so the one that is lacking is among them.
bool DoAllRanksLive(const JobState& job, const Communicator& comm) {
  int32_t world = 0;
  for (const Process& process : job.processes) world = std::max(world, process.world_size);
  if (comm.size >= world || world > kMaxRanks) return false;
  std::vector<bool> lives(static_cast<size_t>(world));
  for (size_t i = 0; i < job.processes.size(); ++i) {
    const int32_t rank = job.processes[i].global_rank;
    if (rank < 0 || rank >= world) continue;
    if (HowProcessEnded(job, static_cast<int32_t>(i)) == Gone::kNo) {
      lives[static_cast<size_t>(rank)] = true;
    }
  }
  return std::all_of(lives.begin(), lives.end(), [](bool is_alive) { return is_alive; });
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
  AddOtherWorld(s, &*verdict);
  const bool any_unknown = std::any_of(verdict->culprits.begin(), verdict->culprits.end(),
                                       [](const Culprit& culprit) { return culprit.process < 0; });
  verdict->all_ranks_live = any_unknown && DoAllRanksLive(s.job, *s.call.communicator);
  return verdict;
}

}  // namespace rollcall
