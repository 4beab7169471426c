#include "daemon/rules/absence.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "daemon/rules/describe.h"
#include "daemon/sentences.h"

namespace rollcall {
namespace {

constexpr size_t kDescribedCulprits = 8;

const Member* FindMember(const Communicator& comm, int32_t rank) {
  const auto it = comm.members.find(rank);
  return it == comm.members.end() ? nullptr : &it->second;
}

Certainty CertaintyOf(const Absence& absence, const std::vector<Absent>& blamed) {
  Evidence best = Evidence::kIndirect;
  for (const Waiter& w : absence.waiters) best = std::max(best, w.wait.evidence);
  Certainty certainty = best == Evidence::kShown      ? Certainty::kCertain
                        : best == Evidence::kInferred ? Certainty::kLikely
                                                      : Certainty::kPossible;
  for (const Absent& absent : blamed) {
    const bool guessed_twice =
        absent.came && absent.at_most == Certainty::kLikely && best != Evidence::kShown;
    certainty = std::min(certainty, guessed_twice ? Certainty::kPossible : absent.at_most);
  }
  if (absence.call.op == Op::kNone) certainty = std::min(certainty, Certainty::kLikely);
  return certainty;
}

int64_t FirstWait(const std::vector<Waiter>& waiters) {
  int64_t since = waiters.front().wait.since_ns;
  for (const Waiter& w : waiters) since = std::min(since, w.wait.since_ns);
  return since;
}

std::string LastCall(const Member& member) {
  if (member.entered == 0) return "";
  const CallRecord* record = FindCollective(member, member.entered - 1);
  if (record == nullptr) return "";
  return absl::StrCat(", the last one ", CallInWords(record->args));
}

void DescribeCulprit(const JobState& job, const Absence& absence, const Absent& absent,
                     int64_t now_ns, Verdict* verdict) {
  const std::string who = RanksInWords({PublicRank(job, absent.process, absent.rank)});
  const Member* member = FindMember(*absence.communicator, absent.rank);
  if (member != nullptr && KindOf(absence.call.op) != CallKind::kCreate) {
    verdict->evidence.push_back(absl::StrCat(who, ": has entered ", member->entered,
                                             " calls on the communicator", LastCall(*member)));
  }
  const std::string doing = WhatItDoes(job, absent.process, now_ns);
  if (!doing.empty() && HowProcessEnded(job, absent.process) == Gone::kNo) {
    verdict->evidence.push_back(absl::StrCat(who, ": ", doing));
  }
  if (HowProcessEnded(job, absent.process) != Gone::kNo) {
    verdict->evidence.push_back(
        absl::StrCat(who, ": ", HowItEnded(job, absent.process, member),
                     absent.gone_since_ns == 0 || now_ns < absent.gone_since_ns
                         ? ""
                         : ", " + DurationInWords(now_ns - absent.gone_since_ns) + " ago"));
  }
}

void AddMissing(const JobState& job, const Absence& absence, const std::vector<Absent>& blamed,
                Verdict* verdict) {
  verdict->missing_evidence = MissingOf(job, absence.waiters);
  for (const std::string& line : absence.missing_evidence) {
    verdict->missing_evidence.push_back(line);
  }
  std::vector<int32_t> silent;
  std::vector<int32_t> unknown;
  for (const Absent& absent : blamed) {
    const Process* process = ProcessOf(job, absent.process);
    if (process == nullptr) {
      if (FindMember(*absence.communicator, absent.rank) != nullptr) unknown.push_back(absent.rank);
      continue;
    }
    const int32_t rank = PublicRank(job, absent.process, absent.rank);
    if (process->liveness == Liveness::kSilent) silent.push_back(rank);
    if (process->liveness == Liveness::kUnknown) unknown.push_back(rank);
  }
  if (!silent.empty()) {
    verdict->missing_evidence.push_back(absl::StrCat("the agent of ", RanksInWords(silent),
                                                     " no longer answers: what is known is old"));
  }
  if (!unknown.empty()) {
    verdict->missing_evidence.push_back(
        absl::StrCat("whether the process of ", RanksInWords(unknown), " lives is not known"));
  }
  if (absence.call.op == Op::kNone) {
    verdict->missing_evidence.push_back(
        absl::StrCat("no record of call #", absence.position, " is left: which call is not known"));
  }
}

// One that is gone cannot come: such a wait is long as soon as the job's
// ordinary end, whose ranks leave one by one, can be told from it.
bool IsLongEnough(const std::vector<Absent>& blamed, Gone gone, int64_t since_ns, int64_t now_ns,
                  const Limits& limits) {
  if (gone == Gone::kNo) return now_ns - since_ns >= limits.suspect_after_ns;
  int64_t gone_since = INT64_MAX;
  for (const Absent& absent : blamed) gone_since = std::min(gone_since, absent.gone_since_ns);
  const int64_t limit = std::min(limits.suspect_after_ns, limits.absent_for_good_ns);
  return now_ns - std::max(since_ns, gone_since) >= limit;
}

}  // namespace

void SetCommunicator(const Communicator& comm, Verdict* verdict) {
  verdict->communicator = comm.id;
  verdict->communicator_name = comm.name;
  verdict->communicator_size = comm.size;
}

CallArgs CallAt(const Communicator& comm, uint64_t position) {
  for (const auto& [rank, member] : comm.members) {
    const CallRecord* record = FindCollective(member, position);
    if (record != nullptr) return record->args;
  }
  return {};
}

std::optional<Verdict> Blame(const JobState& job, const Absence& absence, Cause cause, Gone gone,
                             int64_t now_ns, const Limits& limits) {
  std::vector<Absent> blamed;
  for (const Absent& absent : absence.absents) {
    if (absent.gone == gone) blamed.push_back(absent);
  }
  if (blamed.empty() || absence.waiters.empty()) return std::nullopt;
  const int64_t since = FirstWait(absence.waiters);
  if (!IsLongEnough(blamed, gone, since, now_ns, limits)) return std::nullopt;

  Verdict verdict;
  verdict.cause = cause;
  verdict.certainty = CertaintyOf(absence, blamed);
  SetCommunicator(*absence.communicator, &verdict);
  verdict.position = absence.position;
  verdict.call = absence.call;
  verdict.since_ns = since;
  verdict.waited_ns = now_ns - since;
  for (const Waiter& w : absence.waiters) {
    verdict.waiting_ranks.push_back(PublicRank(job, w.process, w.rank));
    verdict.waiting_processes.push_back(w.process);
  }
  verdict.evidence = EvidenceOf(job, absence.waiters, OpInWords(absence.call.op));
  for (const std::string& line : absence.evidence) verdict.evidence.push_back(line);
  for (const Absent& absent : blamed) {
    const Member* member = FindMember(*absence.communicator, absent.rank);
    verdict.culprits.push_back(MakeCulprit(job, absent.process, absent.rank, member));
    if (verdict.culprits.size() <= kDescribedCulprits) {
      DescribeCulprit(job, absence, absent, now_ns, &verdict);
    }
  }
  AddMissing(job, absence, blamed, &verdict);
  return verdict;
}

void BlameAll(const JobState& job, const std::vector<Absence>& absences, Cause cause, Gone gone,
              int64_t now_ns, const Limits& limits, std::vector<Verdict>* verdicts) {
  for (const Absence& absence : absences) {
    std::optional<Verdict> verdict = Blame(job, absence, cause, gone, now_ns, limits);
    if (verdict) verdicts->push_back(*std::move(verdict));
  }
}

}  // namespace rollcall
