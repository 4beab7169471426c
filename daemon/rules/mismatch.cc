// SPDX-License-Identifier: Apache-2.0
// JudgeMismatches(): makes a verdict from a divergence and blames the minority.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/rules/blame.h"
#include "daemon/rules/divergence.h"
#include "daemon/rules/rules.h"
#include "daemon/rules/thread_race.h"
#include "daemon/words/communicator_names.h"
#include "daemon/words/evidence.h"
#include "daemon/words/habits.h"
#include "daemon/words/mismatch_sentences.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

constexpr size_t kDescribedSides = 8;

bool IsTie(const Divergence& divergence) {
  return HasNoMajority(divergence) && !divergence.decided_by_past;
}

bool IsLost(const Divergence& divergence) { return divergence.position_end != 0; }

Cause MismatchCause(const Divergence& divergence) {
  for (const Side& side : divergence.sides) {
    if (Canonical(side.call.op) != Canonical(divergence.sides[0].call.op)) {
      return Cause::kOperationMismatch;
    }
  }
  return IsLost(divergence) ? Cause::kOperationMismatch : Cause::kArgumentMismatch;
}

// False if the first side has the majority whatever the ranks call that have not entered the call
// yet.
bool CanTurn(const Divergence& divergence) {
  return divergence.sides[0].ranks.size() <=
         divergence.sides[1].ranks.size() + divergence.undecided;
}

Certainty MismatchCertainty(const Divergence& divergence) {
  const bool sure = !IsLost(divergence) && !divergence.may_be_earlier && !CanTurn(divergence) &&
                    !divergence.decided_by_past;
  return sure ? Certainty::kCertain : Certainty::kLikely;
}

// If the operation differs, its arguments differ as well and carry no information.
std::vector<std::string> MismatchedFields(const Divergence& divergence, Cause cause) {
  if (IsLost(divergence)) return {};
  if (cause == Cause::kOperationMismatch) return {"operation"};
  std::set<std::string> differing;
  for (const Side& side : divergence.sides) {
    for (std::string& field : DifferingFields(side.call, divergence.sides[0].call)) {
      differing.insert(std::move(field));
    }
  }
  return {differing.begin(), differing.end()};
}

void AddMinority(const JobState& job, const Communicator& comm, const Divergence& divergence,
                 Verdict* verdict) {
  for (size_t i = IsTie(divergence) ? 0 : 1; i < divergence.sides.size(); ++i) {
    for (const int32_t rank : divergence.sides[i].ranks) {
      const Member& member = comm.members.at(rank);
      Culprit culprit = MakeCulprit(job, member.process, rank, &member);
      culprit.call = divergence.sides[i].call;
      verdict->culprits.push_back(std::move(culprit));
    }
  }
}

std::vector<int32_t> PublicRanks(const JobState& job, const Communicator& comm,
                                 const std::vector<int32_t>& ranks) {
  std::vector<int32_t> result;
  for (const int32_t rank : ranks) {
    result.push_back(PublicRank(job, comm.members.at(rank).process, rank));
  }
  return result;
}

// With the communicator, if the call that the habit expects is on another one.
std::string PastCallInWords(const JobState& job, const CallArgs& call, uint64_t on) {
  const auto comm = job.communicators.find(on);
  if (comm == job.communicators.end()) return CallInWords(call);
  return absl::StrCat(CallInWords(call), " on ", CommunicatorInWords(job, comm->second));
}

void AddMismatchPast(const JobState& job, const Communicator& comm, const Divergence& divergence,
                     Verdict* verdict) {
  const uint64_t expected_on = divergence.expected_on;
  const uint64_t made_on = expected_on == 0 ? 0 : comm.id;
  for (size_t i = 1; i < std::min(divergence.sides.size(), kDescribedSides); ++i) {
    const Side& side = divergence.sides[i];
    verdict->evidence.push_back(BrokenHabitInWords(
        PublicRanks(job, comm, side.ranks), PastCallInWords(job, divergence.expected, expected_on),
        PastCallInWords(job, side.call, made_on), divergence.habit.period,
        divergence.habit.steps()));
  }
  verdict->missing_evidence.push_back(
      "no side has a majority: what the ranks have done in their last steps decides");
}

void AddEvidence(const JobState& job, const Communicator& comm, const Divergence& divergence,
                 Verdict* verdict) {
  for (const Side& side : divergence.sides) {
    if (verdict->evidence.size() == kDescribedSides) break;
    const std::string who = RanksInWords(PublicRanks(job, comm, side.ranks));
    verdict->evidence.push_back(
        IsLost(divergence)
            ? absl::StrCat(who, ": equal histories of calls before #", divergence.position_end)
            : absl::StrCat(who, ": call #", divergence.position, " is ", CallInWords(side.call)));
  }
  if (IsLost(divergence)) {
    verdict->missing_evidence.push_back(absl::StrCat(
        "the records between calls #", divergence.position, " and #", divergence.position_end,
        " were overwritten: the signatures differ, but the first differing call is unknown"));
  } else if (divergence.may_be_earlier) {
    verdict->missing_evidence.push_back(
        absl::StrCat("records before call #", divergence.position,
                     " are lost on some ranks: the calls may differ earlier"));
  }
  if (divergence.decided_by_past) {
    AddMismatchPast(job, comm, divergence, verdict);
  } else if (IsTie(divergence)) {
    verdict->missing_evidence.push_back("no side has a majority: either side may be wrong");
  }
  if (divergence.undecided != 0 && CanTurn(divergence)) {
    verdict->missing_evidence.push_back(
        absl::StrCat("no report yet that ",
                     CountInWords(divergence.undecided, "other rank has", "other ranks have"),
                     " entered this call"));
  }
}

// Leaves out the culprits: they wait as well, but not for other ranks. In a tie each side
// waits for the other.
void AddWaiters(const JobState& job, const Communicator& comm, bool tie, Verdict* verdict) {
  std::set<int32_t> culprits;
  if (!tie) {
    for (const Culprit& culprit : verdict->culprits) culprits.insert(culprit.process);
  }
  for (const Waiter& w : FindWaiters(job, comm)) {
    if (w.wait.position < verdict->position || w.wait.proof == Proof::kIndirect) continue;
    if (culprits.count(w.process) != 0) continue;
    verdict->waiting_ranks.push_back(PublicRank(job, w.process, w.rank));
    verdict->waiting_processes.push_back(w.process);
  }
}

// The contradiction exists since the second side entered the call.
int64_t DivergenceTime(const Divergence& divergence) {
  std::vector<int64_t> times;
  for (const Side& side : divergence.sides) times.push_back(side.since_ns);
  std::sort(times.begin(), times.end());
  return times[1];
}

void AddHistories(const Divergence& divergence, Verdict* verdict) {
  verdict->divergence = divergence.alignment.kind;
  verdict->histories = divergence.alignment.lines;
  const std::string words = DivergenceInWords(divergence.alignment);
  if (!words.empty()) verdict->evidence.push_back(words);
}

Verdict MakeVerdict(const JobState& job, const Communicator& comm, const Divergence& divergence) {
  Verdict verdict;
  verdict.cause = MismatchCause(divergence);
  verdict.certainty = MismatchCertainty(divergence);
  SetCommunicator(job, comm, &verdict);
  verdict.position = divergence.position;
  verdict.position_end = divergence.position_end;
  verdict.call = divergence.sides[0].call;
  verdict.mismatched_fields = MismatchedFields(divergence, verdict.cause);
  verdict.may_turn = divergence.undecided != 0 && CanTurn(divergence);
  verdict.since_ns = DivergenceTime(divergence);
  AddMinority(job, comm, divergence, &verdict);
  AddWaiters(job, comm, IsTie(divergence), &verdict);
  AddEvidence(job, comm, divergence, &verdict);
  AddHistories(divergence, &verdict);
  return verdict;
}

// True if calls of two threads overlapped at the divergence, or just before or after it.
bool OverlapsAt(const Member& member, uint64_t position) {
  if (!member.concurrent_use) return false;
  const LazyVector<CallRecord>& records = member.records;
  for (size_t i = 0; i + 1 < records.size(); ++i) {
    const bool near =
        records[i].position <= position + 1 && records[i + 1].position + 1 >= position;
    if (near && Overlap(records[i], records[i + 1])) return true;
  }
  return false;
}

// The verdict on two threads that raced, so that the order of the calls differs.
std::optional<Verdict> JudgeRace(const JobState& job, const Communicator& comm,
                                 const Verdict& mismatch) {
  Verdict verdict = mismatch;
  verdict.cause = Cause::kConcurrentUse;
  verdict.certainty = Certainty::kLikely;
  verdict.mismatched_fields.clear();
  verdict.culprits.clear();
  std::vector<int32_t> ranks;
  for (const auto& [rank, member] : comm.members) {
    if (!OverlapsAt(member, mismatch.position)) continue;
    verdict.culprits.push_back(MakeCulprit(job, member.process, rank, &member));
    ranks.push_back(verdict.culprits.back().rank);
  }
  if (verdict.culprits.empty()) return std::nullopt;
  verdict.evidence.push_back(absl::StrCat(
      RanksInWords(ranks), ": two threads were inside calls on the communicator at the same time"));
  // If all ranks use several threads, the ranks with the other order are the culprits.
  if (verdict.culprits.size() == comm.members.size()) verdict.culprits = mismatch.culprits;
  return verdict;
}

// Where two threads make calls that nothing orders, no rank is wrong for certain.
void WeighThreads(const JobState& job, const ThreadRace& race, Verdict* verdict) {
  if (race.ranks.empty()) return;
  verdict->may_turn = verdict->may_turn || race.awaits_names;
  verdict->certainty = std::min(verdict->certainty, Certainty::kLikely);
  std::vector<int32_t> ranks;
  const Communicator& comm = job.communicators.at(verdict->communicator);
  for (const int32_t rank : race.ranks) {
    ranks.push_back(PublicRank(job, comm.members.at(rank).process, rank));
  }
  verdict->missing_evidence.push_back(
      absl::StrCat("what orders the calls of two threads of ", RanksInWords(ranks)));
  verdict->evidence.insert(verdict->evidence.end(), race.evidence.begin(), race.evidence.end());
}

// Where threads have taken their turns in other orders, no rank has made a call too many or too
// few.
void ForgetAlignment(const Divergence& divergence, Verdict* verdict) {
  const std::string words = DivergenceInWords(divergence.alignment);
  std::vector<std::string>& lines = verdict->evidence;
  lines.erase(std::remove(lines.begin(), lines.end(), words), lines.end());
  verdict->divergence = DivergenceKind::kNone;
}

size_t CountRanks(const Divergence& divergence) {
  size_t count = 0;
  for (const Side& side : divergence.sides) count += side.ranks.size();
  return count;
}

// The verdict on all ranks, whose threads have taken their turns in different orders.
Verdict MakeThreadVerdict(const JobState& job, const Communicator& comm,
                          const Divergence& divergence, const Verdict& mismatch) {
  Verdict verdict = mismatch;
  verdict.cause = Cause::kConcurrentUse;
  verdict.certainty = Certainty::kLikely;
  verdict.unordered_threads = true;
  verdict.mismatched_fields.clear();
  verdict.culprits.clear();
  verdict.waiting_ranks.clear();
  verdict.waiting_processes.clear();
  for (const Side& side : divergence.sides) {
    for (const int32_t rank : side.ranks) {
      const Member& member = comm.members.at(rank);
      verdict.culprits.push_back(MakeCulprit(job, member.process, rank, &member));
      verdict.culprits.back().call = side.call;
    }
  }
  AddWaiters(job, comm, /*tie=*/true, &verdict);
  return verdict;
}

}  // namespace

std::vector<Verdict> JudgeMismatches(const JobState& job, const Communicator& comm) {
  std::vector<Verdict> verdicts;
  if (comm.size > kMaxRanks) return verdicts;
  for (const Divergence& divergence : FindDivergences(job, comm)) {
    const ThreadRace threads = FindThreadRace(job, comm, divergence);
    verdicts.push_back(MakeVerdict(job, comm, divergence));
    WeighThreads(job, threads, &verdicts.back());
    if (threads.explains) {
      ForgetAlignment(divergence, &verdicts.back());
      verdicts.push_back(MakeThreadVerdict(job, comm, divergence, verdicts.back()));
      continue;
    }
    std::optional<Verdict> race = JudgeRace(job, comm, verdicts.back());
    if (!race) continue;
    // Where other ranks use one thread, those with two are wrong.
    if (threads.ranks.size() == CountRanks(divergence)) {
      race = MakeThreadVerdict(job, comm, divergence, verdicts.back());
    }
    verdicts.push_back(*std::move(race));
  }
  return verdicts;
}

}  // namespace rollcall
