// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/incidents.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "daemon/model/progress.h"
#include "proto/durations.h"

namespace rollcall {
namespace {

constexpr int64_t kPortionsApartNs = kSecond;
// A verdict may be gone for one look only: an agent that reconnects, a snapshot
// taken between two messages. An incident is not closed and reopened for that.
constexpr int64_t kResolveAfterNs = kSecond;
constexpr size_t kWaitingStacks = 4;
// Of the rest: a portion is some 20 MB on its way from a few dozen hosts.
constexpr size_t kPortion = 256;
constexpr size_t kMostOfRest = 4096;

bool HasEnded(const JobState& state, int32_t process) {
  return HowProcessEnded(state, process) != Gone::kNo;
}

// Only processes that used NCCL, once some have: data-loader workers come and go.
size_t CountEndedRanks(const JobState& state) {
  size_t ended = 0;
  for (size_t i = 0; i < state.processes.size(); ++i) {
    const Process& process = state.processes[i];
    const bool counts =
        state.communicators.empty() ? process.global_rank >= 0 : process.has_segment;
    ended += counts && HasEnded(state, static_cast<int32_t>(i));
  }
  return ended;
}

bool HasEnded(const JobState& state) {
  for (size_t i = 0; i < state.processes.size(); ++i) {
    if (!HasEnded(state, static_cast<int32_t>(i))) return false;
  }
  return !state.processes.empty();
}

bool IsForGood(Cause cause) {
  return cause == Cause::kRankExited || cause == Cause::kRankDied || cause == Cause::kNcclError;
}

bool HasMovedPast(const JobState& state, const Verdict& v) {
  return HasMovedPast(state, v.communicator, v.position);
}

void AddProcess(const JobState& state, int32_t process, std::vector<int32_t>* list) {
  if (FindProcess(state, process) == nullptr) return;
  if (HowProcessEnded(state, process) != Gone::kNo) return;
  if (std::find(list->begin(), list->end(), process) == list->end()) list->push_back(process);
}

// The culprits of all verdicts, and a few of those who wait for the root.
std::vector<int32_t> WorthAStack(const JobState& state, const std::vector<Verdict>& verdicts) {
  std::vector<int32_t> result;
  for (const Verdict& v : verdicts) {
    for (const Culprit& culprit : v.culprits) AddProcess(state, culprit.process, &result);
  }
  const size_t culprits = result.size();
  for (const Verdict& v : verdicts) {
    for (const int32_t process : v.waiting_processes) {
      if (result.size() == culprits + kWaitingStacks) return result;
      AddProcess(state, process, &result);
    }
  }
  return result;
}

// If no report arrives on any of them, nothing shows that they make progress.
bool AnyWaiterIsHeard(const JobState& state, const Incident& incident) {
  bool any = false;
  for (const Verdict& v : incident.verdicts) {
    for (const int32_t process : v.waiting_processes) {
      if (IsHeard(state, process)) return true;
      any = true;
    }
  }
  return !any;
}

bool SameCulprits(const Verdict& a, const Verdict& b) {
  return std::equal(a.culprits.begin(), a.culprits.end(), b.culprits.begin(), b.culprits.end(),
                    [](const Culprit& x, const Culprit& y) {
                      return x.process == y.process && x.rank == y.rank && x.ending == y.ending;
                    });
}

// A late agent is no reason for an event: the delay is often over before a person reads it.
bool RestsOnOldWord(const std::vector<Verdict>& verdicts) {
  return std::any_of(verdicts.begin(), verdicts.end(), [](const Verdict& v) { return v.stale; });
}

// The proven length of the wait: up to the oldest report, without the time for which an agent or
// the daemon was stopped.
int64_t CountedWait(const Verdict& v) {
  const int64_t held_ns = std::max<int64_t>(v.counts_from_ns - v.since_ns, 0);
  return v.waited_ns - held_ns - (v.stale ? v.evidence_age_ns : 0);
}

// Equal except for the length of the wait.
bool SameFindings(const std::vector<Verdict>& a, const std::vector<Verdict>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Verdict& x, const Verdict& y) {
    return x.cause == y.cause && x.certainty == y.certainty && x.communicator == y.communicator &&
           x.position == y.position && x.is_consequence == y.is_consequence && x.late == y.late &&
           x.waiting_ranks == y.waiting_ranks && SameCulprits(x, y);
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
                                                int64_t now_ns, const Limits& limits) {
  Events events;
  if (live_) {
    Refresh(state, verdicts, now_ns, limits, &events);
  } else if (std::any_of(verdicts.begin(), verdicts.end(),
                         [&](const Verdict& v) { return IsNews(v); })) {
    Open(state, verdicts, now_ns, &events);
  }
  if (!live_) return events;

  if (live_->state == IncidentState::kSuspected && IsDue(limits)) Confirm(state, now_ns, &events);
  CloseIfOver(state, now_ns, &events);
  return events;
}

// After the first divergence of a communicator the histories differ for ever:
// later differences cannot be separated from it, so it is reported once.
bool IncidentLife::IsNews(const Verdict& verdict) const {
  return !IsContradiction(verdict.cause) || diverged_.count(verdict.communicator) == 0;
}

bool IncidentLife::Holds(const JobState& state, const std::vector<Verdict>& verdicts) const {
  return std::any_of(verdicts.begin(), verdicts.end(), [&](const Verdict& v) {
    return !IsContradiction(v.cause) || IsNews(v) || !HasMovedPast(state, v);
  });
}

bool IncidentLife::IsDue(const Limits& limits) const {
  bool first_wait = true;
  for (const Verdict& v : live_->verdicts) {
    if (v.hearsay) continue;
    if (v.at_once) return true;
    if (IsContradiction(v.cause)) {
      if (IsNews(v)) return true;
      continue;
    }
    const int64_t limit = IsForGood(v.cause)
                              ? std::min(limits.hang_after_ns, limits.absent_for_good_ns)
                              : limits.hang_after_ns;
    // Consequences do not decide, unless a contradiction long reported is all
    // that explains them.
    if ((first_wait || !v.is_consequence) && CountedWait(v) >= limit) return true;
    first_wait = false;
  }
  return false;
}

// Ranks that end after the confirmation belong to the end of the job. Verdicts from then on say
// nothing about the hang.
bool IncidentLife::IsBeingTornDown(const JobState& state) const {
  return live_->state == IncidentState::kConfirmed &&
         CountEndedRanks(state) > ended_when_confirmed_;
}

bool IncidentLife::InvolvedHaveEnded(const JobState& state) const {
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
  incident.id = absl::StrCat(job_, "-", ++count_);
  incident.job = job_;
  incident.opened_ns = now_ns;
  incident.verdicts = verdicts;
  incident.versions = VersionsInUse(state);
  live_ = std::move(incident);
  told_ = verdicts;
  gone_since_ns_ = 0;
  stacks_of_ = WorthAStack(state, verdicts);
  stacks_taken_ns_ = stacks_of_.empty() ? 0 : now_ns;
  rest_next_ns_ = now_ns;
  events->push_back({IncidentEvent::Kind::kOpened, *live_, stacks_of_});
}

// One of some thousands, evenly over the job.
std::vector<int32_t> IncidentLife::NextOfRest(const JobState& state) {
  const size_t step = (state.processes.size() + kMostOfRest - 1) / kMostOfRest;
  std::vector<int32_t> portion;
  for (; rest_next_ < state.processes.size() && portion.size() < kPortion; rest_next_ += step) {
    const auto process = static_cast<int32_t>(rest_next_);
    if (!state.processes[rest_next_].has_segment) continue;
    if (std::find(stacks_of_.begin(), stacks_of_.end(), process) != stacks_of_.end()) continue;
    AddProcess(state, process, &portion);
  }
  return portion;
}

void IncidentLife::AskForStacks(const JobState& state, int64_t now_ns, const Limits& limits,
                                Events* events) {
  if (stacks_taken_ns_ != 0 && now_ns - stacks_taken_ns_ >= limits.stacks_apart_ns) {
    stacks_taken_ns_ = 0;
    std::vector<int32_t> alive;
    for (const int32_t process : stacks_of_) AddProcess(state, process, &alive);
    events->push_back({IncidentEvent::Kind::kTakeStacksAgain, *live_, std::move(alive)});
  }
  if (rest_next_ >= state.processes.size() || now_ns < rest_next_ns_) return;
  rest_next_ns_ = now_ns + kPortionsApartNs;
  std::vector<int32_t> portion = NextOfRest(state);
  if (portion.empty()) return;
  events->push_back({IncidentEvent::Kind::kTakeStacksOfRest, *live_, std::move(portion)});
}

void IncidentLife::Refresh(const JobState& state, const std::vector<Verdict>& verdicts,
                           int64_t now_ns, const Limits& limits, Events* events) {
  AskForStacks(state, now_ns, limits, events);
  if (!Holds(state, verdicts)) {
    if (!AnyWaiterIsHeard(state, *live_)) return;
    if (gone_since_ns_ == 0) gone_since_ns_ = now_ns;
    return;
  }
  gone_since_ns_ = 0;
  if (IsBeingTornDown(state)) return;
  live_->verdicts = verdicts;
  if (RestsOnOldWord(verdicts) || SameFindings(told_, verdicts)) return;
  told_ = verdicts;
  if (live_->state == IncidentState::kConfirmed) Remember();
  events->push_back({IncidentEvent::Kind::kUpdated, *live_, NewStacks(state, now_ns)});
}

std::vector<int32_t> IncidentLife::NewStacks(const JobState& state, int64_t now_ns) {
  // Ranks that wait now may have been running when the first stacks were taken.
  std::vector<int32_t> fresh = WorthAStack(state, live_->verdicts);
  fresh.erase(std::remove_if(fresh.begin(), fresh.end(),
                             [&](int32_t process) {
                               return std::find(stacks_of_.begin(), stacks_of_.end(), process) !=
                                      stacks_of_.end();
                             }),
              fresh.end());
  stacks_of_.insert(stacks_of_.end(), fresh.begin(), fresh.end());
  if (!fresh.empty()) stacks_taken_ns_ = now_ns;
  return fresh;
}

void IncidentLife::Remember() {
  for (const Verdict& v : live_->verdicts) {
    if (IsContradiction(v.cause)) diverged_.insert(v.communicator);
  }
}

void IncidentLife::Confirm(const JobState& state, int64_t now_ns, Events* events) {
  told_ = live_->verdicts;
  live_->state = IncidentState::kConfirmed;
  live_->confirmed_ns = now_ns;
  live_->versions = VersionsInUse(state);  // ranks may have come to NCCL since it was opened
  ended_when_confirmed_ = CountEndedRanks(state);
  Remember();
  events->push_back({IncidentEvent::Kind::kConfirmed, *live_, {}});
}

void IncidentLife::CloseIfOver(const JobState& state, int64_t now_ns, Events* events) {
  if (HasEnded(state)) {
    Close(IncidentState::kEnded, now_ns, events);
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
  stacks_taken_ns_ = 0;
  stacks_of_.clear();
  rest_next_ = 0;
}

}  // namespace rollcall
