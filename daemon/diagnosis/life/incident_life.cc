// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/life/incident_life.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/durations.h"
#include "daemon/diagnosis/life/incident_ranks.h"
#include "daemon/model/incident_id.h"
#include "daemon/model/progress.h"
#include "daemon/rules/freshness.h"

namespace rollcall {
namespace {

// A verdict may be absent from one diagnosis only, because an agent reconnects or because
// the snapshot lies between two messages. The incident stays open for this time.
constexpr int64_t kResolveAfterNs = kSecond;
// Most ranks make a call within moments of each other: an incident is confirmed with the majority
// that they decide, if they come within this time. A job that is ended at the confirmation gets no
// better verdict.
constexpr int64_t kOthersComeWithinNs = kSecond;

bool IsForGood(Cause cause) {
  return cause == Cause::kRankExited || cause == Cause::kRankDied || cause == Cause::kNcclError;
}

bool HasMovedPast(const JobState& state, const Verdict& v) {
  return HasMovedPast(state, v.communicator, v.position);
}

bool IsAnyFound(const Incident& incident) {
  return std::any_of(incident.verdicts.begin(), incident.verdicts.end(), [](const Verdict& v) {
    return !v.waiting_processes.empty() ||
           std::any_of(v.culprits.begin(), v.culprits.end(),
                       [](const Culprit& culprit) { return culprit.process >= 0; });
  });
}

bool SameNetwork(const NetworkWalk& a, const NetworkWalk& b) {
  return a.fault == b.fault && a.culprit == b.culprit && a.peer == b.peer;
}

bool SameHostEvidence(const Verdict& a, const Verdict& b) {
  return std::equal(a.host_evidence.begin(), a.host_evidence.end(), b.host_evidence.begin(),
                    b.host_evidence.end(), [](const HostEvidence& x, const HostEvidence& y) {
                      return x.kind == y.kind && x.host == y.host && x.subject == y.subject;
                    });
}

bool SameCulprits(const Verdict& a, const Verdict& b) {
  return std::equal(a.culprits.begin(), a.culprits.end(), b.culprits.begin(), b.culprits.end(),
                    [](const Culprit& x, const Culprit& y) {
                      return x.process == y.process && x.rank == y.rank && x.ranks == y.ranks &&
                             x.ending == y.ending;
                    });
}

// A late agent is not a reason for an event: the delay is often over before a person reads it.
bool RestsOnOldReports(const std::vector<Verdict>& verdicts) {
  return std::any_of(verdicts.begin(), verdicts.end(), [](const Verdict& v) { return v.stale; });
}

bool IsAnyUnsettled(const std::vector<Verdict>& verdicts) {
  return std::any_of(verdicts.begin(), verdicts.end(),
                     [](const Verdict& v) { return v.unsettled; });
}

// The proven length of the wait: up to the oldest report, without the time for which an agent or
// the daemon was stopped. Where agents tick often, the age of their reports makes no difference.
int64_t CountedWait(const Verdict& v) {
  const int64_t held_ns = std::max<int64_t>(v.counts_from_ns - v.since_ns, 0);
  const bool age_counts = v.stale || v.evidence_age_ns > kFreshReportNs;
  return v.waited_ns - held_ns - (age_counts ? v.evidence_age_ns : 0);
}

// True if the verdicts are equal except for the length of the wait.
bool SameFindings(const std::vector<Verdict>& a, const std::vector<Verdict>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Verdict& x, const Verdict& y) {
    return x.cause == y.cause && x.certainty == y.certainty && x.communicator == y.communicator &&
           x.position == y.position && x.is_consequence == y.is_consequence && x.late == y.late &&
           x.is_idle == y.is_idle && x.waiting_ranks == y.waiting_ranks && SameCulprits(x, y) &&
           SameHostEvidence(x, y) && SameNetwork(x.network, y.network);
  });
}

}  // namespace

const char* IncidentStateName(IncidentState state) {
  switch (state) {
    case IncidentState::kSuspected:
      return "suspected";
    case IncidentState::kConfirmed:
      return "confirmed";
    case IncidentState::kResolved:
      return "resolved";
    case IncidentState::kEnded:
      return "ended";
  }
  return "suspected";
}

std::vector<IncidentEvent> IncidentLife::Update(const JobState& state,
                                                const std::vector<Verdict>& verdicts,
                                                int64_t now_ns, const Limits& limits, View view) {
  Events events;
  if (live_) {
    if (live_->is_stored) FindProcesses(state);
    AddEndedBefore(state);
    Refresh(state, verdicts, now_ns, limits, view, &events);
  } else if (std::any_of(verdicts.begin(), verdicts.end(),
                         [&](const Verdict& v) { return IsNews(v); })) {
    Open(state, verdicts, now_ns, &events);
  }
  if (!live_) return events;

  const bool may_confirm = live_->state == IncidentState::kSuspected && !live_->is_stored;
  if (may_confirm && IsDue(state, now_ns, limits)) Confirm(state, now_ns, &events);
  CloseIfOver(state, now_ns, &events);
  return events;
}

void IncidentLife::Restore(Incident incident) {
  live_ = std::move(incident);
  live_->is_stored = true;
  reported_ = live_->verdicts;
  searched_ = SIZE_MAX;
  unheard_.clear();
  stacks_ = StackPlan();
  if (live_->state == IncidentState::kConfirmed) Remember(*live_);
}

void IncidentLife::RestoreClosed(const Incident& incident) { Remember(incident); }

std::vector<IncidentEvent> IncidentLife::End(int64_t now_ns) {
  Events events;
  if (live_) Close(IncidentState::kEnded, now_ns, &events);
  return events;
}

// Finds the processes that a stored incident involves, as far as their hosts have reported.
void IncidentLife::FindProcesses(const JobState& state) {
  if (searched_ == state.processes.size()) return;
  searched_ = state.processes.size();
  std::map<std::pair<std::string, int32_t>, int32_t> by_pid;
  std::map<int32_t, int32_t> by_rank;
  for (size_t i = 0; i < state.processes.size(); ++i) {
    const Process& process = state.processes[i];
    by_pid[{process.host, process.pid}] = static_cast<int32_t>(i);
    if (process.global_rank >= 0) by_rank[process.global_rank] = static_cast<int32_t>(i);
  }
  for (Verdict& v : live_->verdicts) {
    for (Culprit& culprit : v.culprits) {
      const auto at = by_pid.find({culprit.host, culprit.pid});
      const int32_t before = std::exchange(culprit.process, at == by_pid.end() ? -1 : at->second);
      const bool was_unheard = v.cause == Cause::kHostLost && before < 0 && culprit.process >= 0;
      if (was_unheard) unheard_.push_back(culprit.process);
    }
    v.waiting_processes.clear();
    const auto comm = state.communicators.find(v.communicator);
    for (const int32_t rank : v.waiting_ranks) {
      int32_t process = -1;
      if (const auto at = by_rank.find(rank); at != by_rank.end()) {
        process = at->second;
      } else if (by_rank.empty() && comm != state.communicators.end()) {
        const auto member = comm->second.members.find(rank);
        if (member != comm->second.members.end()) process = member->second.process;
      }
      if (process >= 0) v.waiting_processes.push_back(process);
    }
  }
}

// The same hang as the stored one: its job waits at the same place.
bool IncidentLife::IsStored(const Verdict& verdict) const {
  return std::any_of(live_->verdicts.begin(), live_->verdicts.end(), [&](const Verdict& v) {
    return v.communicator == verdict.communicator && v.position == verdict.position;
  });
}

// After the first divergence of a communicator the histories differ for ever. Later
// differences may be its effects, so an incident reports only the first. The calls of two threads
// at one position are one event, also where the records of ended ranks show them again.
bool IncidentLife::IsNews(const Verdict& verdict) const {
  if (verdict.cause == Cause::kConcurrentUse) {
    return raced_.count({verdict.communicator, verdict.position}) == 0;
  }
  return !IsContradiction(verdict.cause) || diverged_.count(verdict.communicator) == 0;
}

bool IncidentLife::Holds(const JobState& state, const std::vector<Verdict>& verdicts) const {
  return std::any_of(verdicts.begin(), verdicts.end(), [&](const Verdict& v) {
    if (live_->is_stored && !IsStored(v)) return false;
    return !IsContradiction(v.cause) || IsNews(v) || !HasMovedPast(state, v);
  });
}

// A rank that has ended may be the beginning of the end of the job, after which no rank comes.
bool IncidentLife::AwaitsOtherRanks(const JobState& state, const Verdict& verdict,
                                    int64_t now_ns) const {
  return verdict.may_turn && now_ns - live_->opened_ns < kOthersComeWithinNs &&
         CountEndedRanks(state) == 0;
}

bool IncidentLife::IsDue(const JobState& state, int64_t now_ns, const Limits& limits) const {
  bool first_wait = true;
  for (const Verdict& v : live_->verdicts) {
    if (v.unsettled || v.is_idle) {
      // Nor do the waits count that only an idle one explains.
      if (!IsContradiction(v.cause)) first_wait = false;
      continue;
    }
    if (v.at_once) return true;
    if (IsContradiction(v.cause)) {
      if (IsNews(v) && !AwaitsOtherRanks(state, v, now_ns)) return true;
      continue;
    }
    const int64_t limit = IsForGood(v.cause)
                              ? std::min(limits.hang_after_ns, limits.absent_for_good_ns)
                              : limits.hang_after_ns;
    // Consequences do not count, unless only an earlier contradiction explains them.
    if ((first_wait || !v.is_consequence) && CountedWait(v) >= limit) return true;
    first_wait = false;
  }
  return false;
}

// Ranks that end after the confirmation belong to the end of the job. Later verdicts describe
// that end and not the hang.
bool IncidentLife::IsBeingTornDown(const JobState& state) const {
  return live_->state == IncidentState::kConfirmed && CountEndedRanks(state) > live_->ended_ranks;
}

// A host that was out of reach at the confirmation may report a rank that had ended before.
void IncidentLife::AddEndedBefore(const JobState& state) {
  if (live_->state != IncidentState::kConfirmed) return;
  if (!live_->is_stored) live_->ended_ranks += CountEndedRanks(state, counted_);
  counted_ = state.processes.size();
  live_->ended_ranks += TakeEndedBy(state, live_->confirmed_ns, &unheard_);
}

bool IncidentLife::InvolvedHaveEnded(const JobState& state) const {
  if (live_->is_stored && !IsAnyFound(*live_)) return false;
  for (const Verdict& v : live_->verdicts) {
    for (const Culprit& culprit : v.culprits) {
      if (culprit.process >= 0 && !HasEnded(state, culprit.process)) return false;
    }
    for (const int32_t process : v.waiting_processes) {
      if (!HasEnded(state, process)) return false;
    }
  }
  return true;
}

void IncidentLife::Open(const JobState& state, const std::vector<Verdict>& verdicts, int64_t now_ns,
                        Events* events) {
  Incident incident;
  incident.id = absl::StrCat(IncidentIdPrefix(job_), ++count_);
  incident.job = job_;
  incident.opened_ns = now_ns;
  incident.verdicts = verdicts;
  incident.versions = VersionsInUse(state);
  live_ = std::move(incident);
  reported_ = verdicts;
  gone_since_ns_ = 0;
  stacks_ = StackPlan();
  events->push_back({IncidentEvent::Kind::kOpened, *live_, stacks_.First(state, verdicts, now_ns)});
}

void IncidentLife::AskForStacks(const JobState& state, int64_t now_ns, const Limits& limits,
                                Events* events) {
  const std::pair<IncidentEvent::Kind, std::vector<int32_t>> asks[] = {
      {IncidentEvent::Kind::kTakeStacksAgain,
       stacks_.Again(state, live_->verdicts, now_ns, limits)},
      {IncidentEvent::Kind::kTakeStacksOfRest, stacks_.Rest(state, now_ns)},
      {IncidentEvent::Kind::kTakeTransfers, stacks_.Transfers(state, now_ns)},
  };
  for (const auto& [kind, processes] : asks) {
    if (!processes.empty()) events->push_back({kind, *live_, processes});
  }
}

void IncidentLife::Refresh(const JobState& state, const std::vector<Verdict>& verdicts,
                           int64_t now_ns, const Limits& limits, View view, Events* events) {
  AskForStacks(state, now_ns, limits, events);
  if (!Holds(state, verdicts)) {
    if (live_->is_stored && !IsAnyFound(*live_)) return;
    if (!AnyWaiterIsHeard(state, live_->verdicts)) return;
    if (IsCountedAnew(state, live_->verdicts.front(), live_->opened_ns) ||
        AwaitsVerdictOnEnd(state, live_->verdicts.front())) {
      gone_since_ns_ = 0;
      return;
    }
    if (gone_since_ns_ == 0) {
      gone_since_ns_ = now_ns;
      gone_alive_ = !IsBeingTornDown(state);
    }
    return;
  }
  gone_since_ns_ = 0;
  if (IsBeingTornDown(state)) return;
  // The stored verdicts rest on all hosts.
  const bool is_confirmed = live_->state == IncidentState::kConfirmed;
  if (live_->is_stored && is_confirmed && view == View::kPart) return;
  if (is_confirmed && IsAnyUnsettled(verdicts)) return;
  live_->is_stored = false;
  live_->verdicts = verdicts;
  if (RestsOnOldReports(verdicts) || SameFindings(reported_, verdicts)) return;
  reported_ = verdicts;
  if (is_confirmed) Remember(*live_);
  events->push_back({IncidentEvent::Kind::kUpdated, *live_, stacks_.New(state, verdicts, now_ns)});
}

void IncidentLife::Remember(const Incident& incident) {
  for (const Verdict& v : incident.verdicts) {
    if (IsContradiction(v.cause)) diverged_.insert(v.communicator);
    if (v.cause == Cause::kConcurrentUse) raced_.insert({v.communicator, v.position});
  }
}

void IncidentLife::Confirm(const JobState& state, int64_t now_ns, Events* events) {
  reported_ = live_->verdicts;
  live_->state = IncidentState::kConfirmed;
  live_->confirmed_ns = now_ns;
  live_->versions = VersionsInUse(state);  // more ranks may have loaded NCCL since the opening
  live_->ended_ranks = CountEndedRanks(state);
  counted_ = state.processes.size();
  unheard_ = UnheardRanks(state);
  Remember(*live_);
  events->push_back({IncidentEvent::Kind::kConfirmed, *live_, {}});
}

// True if the job has gone on and then ended in good order, however soon.
bool IncidentLife::HasGoneOn(const JobState& state) const {
  if (live_->is_stored || !HaveAllExited(state)) return false;
  if (gone_since_ns_ != 0 && gone_alive_) return true;
  const Verdict& verdict = live_->verdicts.front();
  return !IsContradiction(verdict.cause) && state.communicators.count(verdict.communicator) != 0 &&
         HasMovedPast(state, verdict);
}

void IncidentLife::CloseIfOver(const JobState& state, int64_t now_ns, Events* events) {
  if (HasJobEnded(state, now_ns, kLostForGoodNs)) {
    Close(HasGoneOn(state) ? IncidentState::kResolved : IncidentState::kEnded, now_ns, events);
  } else if (IsBeingTornDown(state)) {
    // Without waiting ranks there are no verdicts, but also no progress.
    if (InvolvedHaveEnded(state)) Close(IncidentState::kEnded, now_ns, events);
  } else if (gone_since_ns_ != 0 && now_ns - gone_since_ns_ >= kResolveAfterNs) {
    Close(IncidentState::kResolved, now_ns, events);
  }
}

void IncidentLife::Close(IncidentState how, int64_t now_ns, Events* events) {
  live_->state = how;
  live_->closed_ns = now_ns;
  events->push_back(
      {how == IncidentState::kEnded ? IncidentEvent::Kind::kEnded : IncidentEvent::Kind::kResolved,
       *live_,
       {}});
  live_.reset();
  gone_since_ns_ = 0;
  stacks_ = StackPlan();
  unheard_.clear();
}

}  // namespace rollcall
