// SPDX-License-Identifier: Apache-2.0
#include "daemon/rules/blame.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/model/waits/wait_frames.h"
#include "daemon/rules/freshness.h"
#include "daemon/words/communicator_names.h"
#include "daemon/words/evidence.h"
#include "daemon/words/rank_ranges.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

constexpr size_t kDescribedCulprits = 8;
constexpr uint32_t kEnoughSeen = 8;  // calls from which a usual duration is reliable
constexpr size_t kFewRanks = 8;      // of whom all stacks are taken

bool HasFreshStack(const Suspicion& s, const Absent& absent) {
  const Process* process = FindProcess(s.job, absent.process);
  return process != nullptr && process->stacks_ns != 0 && process->stacks_ns >= s.call.since_ns;
}

// If another absent rank does not wait so, that one holds it up. Stacks of before the wait prove
// nothing.
bool WaitsOutside(const Suspicion& s, const Absent& absent) {
  const Process* process = FindProcess(s.job, absent.process);
  return process != nullptr && process->waits_outside_since_ns != 0 && HasFreshStack(s, absent);
}

// By its stack: an older library records no messages of gloo with tags, and this one has room for a
// few at a time. The sends and receives within a monitored barrier are a part of that call.
bool WaitsInUnrecordedMessage(const Suspicion& s, const Absent& absent) {
  if (s.call.communicator->kind != CommKind::kGloo || !HasFreshStack(s, absent)) return false;
  const Process& process = *FindProcess(s.job, absent.process);
  return process.blocked.empty() && HasWait(process.place.functions, waits::kMessage) &&
         !absl::StrContains(process.place.functions, "monitoredBarrier");
}

bool WaitsElsewhere(const Suspicion& s, const Absent& absent) {
  return WaitsOutside(s, absent) || WaitsInUnrecordedMessage(s, absent);
}

// Two ends that were both issued, and do not meet, may have other tags: nobody has left out a call.
void WeakenBetweenTags(const Suspicion& s, const std::vector<Absent>& absents, Verdict* verdict) {
  std::vector<int32_t> ranks;
  for (const Absent& absent : absents) {
    if (!WaitsInUnrecordedMessage(s, absent)) continue;
    ranks.push_back(PublicRank(s.job, absent.process, absent.rank));
  }
  if (ranks.empty()) return;
  verdict->certainty = std::min(verdict->certainty, Certainty::kLikely);
  verdict->missing_evidence.push_back(
      absl::StrCat("whether the messages of ", RanksInWords(ranks),
                   " have the tags that their peers wait for: they are not recorded"));
}

// While the stacks of only some of the few absent ranks have come, another one of them may show
// that it waits for these.
void WeakenWithoutStacks(const Suspicion& s, const std::vector<Absent>& absents, Verdict* verdict) {
  if (absents.size() < 2 || absents.size() > kFewRanks) return;
  std::vector<int32_t> unknown;
  for (const Absent& absent : absents) {
    if (HasFreshStack(s, absent)) continue;
    unknown.push_back(PublicRank(s.job, absent.process, absent.rank));
  }
  if (unknown.empty() || unknown.size() == absents.size()) return;
  verdict->certainty = std::min(verdict->certainty, Certainty::kLikely);
  verdict->missing_evidence.push_back(absl::StrCat("where ", RanksInWords(unknown),
                                                   PluralForm(unknown.size(), " stands", " stand"),
                                                   ": it may wait for another absent rank"));
}

void AddHeldUp(const std::vector<int32_t>& ranks, Verdict* verdict) {
  verdict->certainty = std::min(verdict->certainty, Certainty::kLikely);
  verdict->evidence.push_back(absl::StrCat(
      "also absent, but waiting for others outside of recorded calls: ", RanksInWords(ranks)));
  verdict->missing_evidence.push_back(absl::StrCat("what ", RanksInWords(ranks),
                                                   PluralForm(ranks.size(), " waits", " wait"),
                                                   " for outside of recorded calls is unknown"));
}

// True if Rollcall infers both the wait and the end of the absent rank.
bool IsGuessedTwice(const Absent& absent, Proof best) {
  return absent.lack == Lack::kGone && absent.at_most == Certainty::kLikely &&
         best != Proof::kShown;
}

Certainty BlameCertainty(const StuckCall& call, const std::vector<Absent>& blamed) {
  Proof best = Proof::kIndirect;
  for (const Waiter& w : call.waiters) best = std::max(best, w.wait.proof);
  Certainty certainty = best == Proof::kShown      ? Certainty::kCertain
                        : best == Proof::kInferred ? Certainty::kLikely
                                                   : Certainty::kPossible;
  for (const Absent& absent : blamed) {
    certainty =
        std::min(certainty, IsGuessedTwice(absent, best) ? Certainty::kPossible : absent.at_most);
    if (absent.gone == Gone::kEnded && !absent.failed) {
      certainty = std::min(certainty, Certainty::kLikely);
    }
  }
  if (call.call.op == Op::kNone) certainty = std::min(certainty, Certainty::kLikely);
  return certainty;
}

std::string LastCall(const Member& member) {
  if (member.entered == 0) return "";
  const CallRecord* record = FindCollective(member, member.entered - 1);
  if (record == nullptr) return "";
  return absl::StrCat(", most recently ", CallInWords(record->args));
}

void DescribeProgress(const StuckCall& call, const Absent& absent, const Member& member,
                      const std::string& who, Verdict* verdict) {
  if (call.kind == StuckCall::Kind::kCreation || call.kind == StuckCall::Kind::kStoreKey) return;
  if (absent.lack == Lack::kNotStarted) {
    verdict->evidence.push_back(absl::StrCat(
        who, ": the host has made the call, but the GPU has ", "started only ", member.started,
        " of ", CountInWords(member.entered, "call", "calls"), " on the communicator"));
  } else if (call.kind == StuckCall::Kind::kP2p) {
    verdict->evidence.push_back(absl::StrCat(
        who, ": issued ", CountInWords(member.p2p_entered, "send or receive", "sends and receives"),
        " on the communicator"));
  } else {
    verdict->evidence.push_back(absl::StrCat(who, ": entered ",
                                             CountInWords(member.entered, "call", "calls"),
                                             " on the communicator", LastCall(member)));
  }
}

void DescribeCulprit(const Suspicion& s, const Absent& absent, Verdict* verdict) {
  const std::string who = RanksInWords({PublicRank(s.job, absent.process, absent.rank)});
  const Member* member = FindMember(*s.call.communicator, absent.rank);
  if (member != nullptr) DescribeProgress(s.call, absent, *member, who, verdict);
  const bool ended = HowProcessEnded(s.job, absent.process) != Gone::kNo;
  if (!ended && !absent.failed) {
    const std::string doing =
        DescribeActivity(s.job, absent.process, s.now_ns, s.call.communicator, absent.rank);
    if (!doing.empty()) verdict->evidence.push_back(absl::StrCat(who, ": ", doing));
    return;
  }
  const bool when = absent.gone_since_ns != 0 && s.now_ns >= absent.gone_since_ns;
  verdict->evidence.push_back(
      absl::StrCat(who, ": ", DescribeEnding(s.job, absent.process, member),
                   when ? ", " + DurationInWords(s.now_ns - absent.gone_since_ns) + " ago" : ""));
}

void AddMissing(const Suspicion& s, const std::vector<Absent>& blamed, Verdict* verdict) {
  std::vector<int32_t> silent, stale, unknown, ended;
  for (const Absent& absent : blamed) {
    const Process* process = FindProcess(s.job, absent.process);
    const int32_t rank = PublicRank(s.job, absent.process, absent.rank);
    if (process == nullptr) {
      if (FindMember(*s.call.communicator, absent.rank) != nullptr) unknown.push_back(rank);
    } else if (process->liveness == Liveness::kSilent) {
      silent.push_back(rank);
    } else if (absent.stale) {
      stale.push_back(rank);
    } else if (process->liveness == Liveness::kUnknown && !s.job.offline) {
      unknown.push_back(rank);
    } else if (process->liveness == Liveness::kEnded && !absent.failed) {
      ended.push_back(rank);
    }
  }
  if (!silent.empty()) {
    verdict->missing_evidence.push_back(absl::StrCat("the agent of ", RanksInWords(silent),
                                                     " no longer responds: its data is old"));
  }
  if (!stale.empty()) {
    verdict->missing_evidence.push_back(absl::StrCat("the newest report on ", RanksInWords(stale),
                                                     " is old, and may miss calls made since"));
  }
  if (!unknown.empty()) {
    verdict->missing_evidence.push_back(absl::StrCat("no agent reports whether the process of ",
                                                     RanksInWords(unknown), " is alive"));
  }
  if (!ended.empty()) {
    verdict->missing_evidence.push_back(
        absl::StrCat("the exit status of ", RanksInWords(ended),
                     " is unknown: the process may have been killed or may have exited"));
  }
}

// An exception has ended one of them, or NCCL has refused its call: no wait brings it back.
bool AnyFailed(const std::vector<Absent>& blamed) {
  return std::any_of(blamed.begin(), blamed.end(),
                     [](const Absent& a) { return a.failed || a.is_refused; });
}

// A rank that is gone cannot enter the call. A wait for such ranks is long enough as soon as
// it differs from the normal end of a job, whose ranks leave one by one.
bool IsLongEnough(const Suspicion& s, const std::vector<Absent>& blamed) {
  if (AnyFailed(blamed)) return true;
  const int64_t waited = s.now_ns - s.call.since_ns;
  const int64_t usual = SuspectAfter(*s.call.communicator, s.call.call, s.limits);
  int64_t gone_since = INT64_MAX;
  for (const Absent& absent : blamed) {
    if (absent.gone == Gone::kNo) return waited >= usual;
    gone_since = std::min(gone_since, absent.gone_since_ns);
  }
  const int64_t limit = std::min(s.limits.suspect_after_ns, s.limits.absent_for_good_ns);
  return s.now_ns - std::max(s.call.since_ns, gone_since) >= limit;
}

// The process; nullptr if its stacks are older than the wait: such stacks prove nothing.
const Process* FindFreshStacks(const Suspicion& s, const Absent& absent) {
  const Process* process = FindProcess(s.job, absent.process);
  const bool is_old =
      process != nullptr && process->stacks_ns != 0 && process->stacks_ns < s.call.since_ns;
  return is_old ? nullptr : process;
}

// True if stacks and CPU time show that the process makes progress outside NCCL.
bool IsLate(const Suspicion& s, const Absent& absent) {
  const Process* process = FindFreshStacks(s, absent);
  return process != nullptr && !process->holds_several && IsHeard(s.job, absent.process) &&
         process->liveness == Liveness::kAlive && process->cpu_moving &&
         process->motion == Motion::kMoving;
}

// Names the culprits without a line of their own.
void AddRest(Verdict* verdict) {
  const std::vector<Culprit>& culprits = verdict->culprits;
  if (culprits.size() <= kDescribedCulprits) return;
  std::vector<RankRange> rest;
  for (size_t i = kDescribedCulprits; i < culprits.size(); ++i) {
    rest.push_back(CulpritRange(culprits[i]));
  }
  const RankRanges ranks(std::move(rest));
  verdict->evidence.push_back(absl::StrCat("and ", ranks.size(), " more: ", ranks.InWords()));
}

void AddCulprits(const Suspicion& s, const std::vector<Absent>& blamed, Verdict* verdict) {
  for (const Absent& absent : blamed) {
    const Member* member = FindMember(*s.call.communicator, absent.rank);
    verdict->culprits.push_back(MakeCulprit(s.job, absent.process, absent.rank, member));
    verdict->culprits.back().ranks = absent.ranks;
    if (verdict->culprits.size() > kDescribedCulprits) continue;
    DescribeCulprit(s, absent, verdict);
    const Process* process = FindFreshStacks(s, absent);
    // The stacks of a process are those of all its ranks.
    if (process == nullptr || process->holds_several) continue;
    absl::StrAppend(&verdict->stack_words, process->stack_words, " ");
  }
  AddRest(verdict);
  verdict->late = !blamed.empty() && std::all_of(blamed.begin(), blamed.end(),
                                                 [&](const Absent& a) { return IsLate(s, a); });
}

}  // namespace

int64_t SuspectAfter(const Communicator& comm, const CallArgs& call, const Limits& limits) {
  const int64_t floor = std::min(limits.suspect_floor_ns, limits.suspect_after_ns);
  const uint8_t size_class = SizeClass(call.count);
  for (const UsualDuration& usual : comm.usual) {
    if (usual.op != call.op || usual.size_class != size_class || usual.seen < kEnoughSeen) continue;
    if (usual.longest_ns >= limits.suspect_after_ns / limits.suspect_times_usual) break;
    return std::max(floor, usual.longest_ns * limits.suspect_times_usual);
  }
  return limits.suspect_after_ns;
}

Certainty CertaintyOfWaits(const std::vector<Waiter>& waiters) {
  size_t shown = 0;
  for (const Waiter& w : waiters) shown += w.wait.proof == Proof::kShown;
  if (shown == 0) return Certainty::kPossible;
  return shown == waiters.size() ? Certainty::kCertain : Certainty::kLikely;
}

WaitEdge MakeEdge(const JobState& job, const StuckCall& call) {
  WaitEdge edge;
  edge.communicator = call.communicator->id;
  edge.communicator_name = NameForPeople(job, *call.communicator);
  edge.communicator_kind = call.communicator->kind;
  edge.communicator_size = call.communicator->size;
  edge.position = call.position;
  edge.call = call.call;
  return edge;
}

void TellApart(std::vector<WaitEdge>* edges) {
  std::map<std::string, std::set<uint64_t>> ids;
  for (const WaitEdge& edge : *edges) ids[edge.communicator_name].insert(edge.communicator);
  for (WaitEdge& edge : *edges) {
    if (edge.communicator_name.empty() || ids[edge.communicator_name].size() == 1) continue;
    absl::StrAppend(&edge.communicator_name, " ", IdInHex(edge.communicator).substr(0, 8));
  }
}

void SetCommunicator(const JobState& job, const Communicator& comm, Verdict* verdict) {
  verdict->communicator = comm.id;
  verdict->communicator_name = NameForPeople(job, comm);
  verdict->communicator_kind = comm.kind;
  verdict->communicator_size = comm.size;
  const Process* first =
      comm.members.empty() ? nullptr : FindProcess(job, comm.members.begin()->second.process);
  verdict->of_communicator = first != nullptr && first->holds_several;
}

std::optional<Verdict> Describe(const Suspicion& s, Cause cause, int64_t limit_ns) {
  const StuckCall& call = s.call;
  if (call.waiters.empty() || s.now_ns - call.since_ns < limit_ns) return std::nullopt;
  Verdict verdict;
  verdict.cause = cause;
  SetCommunicator(s.job, *call.communicator, &verdict);
  verdict.position = call.position;
  verdict.call = call.call;
  verdict.since_ns = call.since_ns;
  verdict.waited_ns = s.now_ns - call.since_ns;
  verdict.counts_from_ns = CountedSince(s.job, call.waiters);
  verdict.waiting_ranks.reserve(call.waiters.size());
  verdict.waiting_processes.reserve(call.waiters.size());
  for (const Waiter& w : call.waiters) {
    verdict.waiting_ranks.push_back(PublicRank(s.job, w.process, w.rank));
    verdict.waiting_processes.push_back(w.process);
  }
  verdict.evidence =
      DescribeEvidence(s.job, call.waiters, verdict.waiting_ranks, OpInWords(call.call.op));
  verdict.evidence.insert(verdict.evidence.end(), call.evidence.begin(), call.evidence.end());
  verdict.missing_evidence = DescribeMissing(s.job, call.waiters, verdict.waiting_ranks);
  verdict.missing_evidence.insert(verdict.missing_evidence.end(), call.missing_evidence.begin(),
                                  call.missing_evidence.end());
  if (call.call.op == Op::kNone) {
    verdict.missing_evidence.push_back(
        absl::StrCat("the record of call #", call.position, " is lost: the operation is unknown"));
  }
  return verdict;
}

std::optional<Verdict> Blame(const Suspicion& s, Cause cause, const std::vector<Absent>& blamed) {
  if (blamed.empty() || s.call.waiters.empty() || !IsLongEnough(s, blamed)) return std::nullopt;
  std::optional<Verdict> verdict = Describe(s, cause, INT64_MIN);
  verdict->certainty = BlameCertainty(s.call, blamed);
  verdict->at_once = AnyFailed(blamed);
  AddCulprits(s, blamed, &*verdict);
  AddMissing(s, blamed, &*verdict);
  return verdict;
}

std::optional<Verdict> BlameNotHeldUp(const Suspicion& s, Cause cause,
                                      std::vector<Absent> absents) {
  const auto held_up = std::stable_partition(
      absents.begin(), absents.end(), [&s](const Absent& a) { return !WaitsElsewhere(s, a); });
  if (held_up == absents.begin() || held_up == absents.end()) {
    std::optional<Verdict> verdict = Blame(s, cause, absents);
    if (!verdict) return verdict;
    WeakenWithoutStacks(s, absents, &*verdict);
    WeakenBetweenTags(s, absents, &*verdict);
    return verdict;
  }
  std::vector<int32_t> ranks;
  for (auto a = held_up; a != absents.end(); ++a) {
    ranks.push_back(PublicRank(s.job, a->process, a->rank));
  }
  absents.erase(held_up, absents.end());
  std::optional<Verdict> verdict = Blame(s, cause, absents);
  if (verdict) AddHeldUp(ranks, &*verdict);
  return verdict;
}

}  // namespace rollcall
