// SPDX-License-Identifier: Apache-2.0
#include "daemon/fleet/job_claims.h"

#include <algorithm>
#include <utility>

#include "base/durations.h"
#include "base/rendezvous.h"

namespace rollcall {
namespace {

// a job that came from a daemon that agents do not reach
constexpr int64_t kStaysNs = 3600 * kSecond;
constexpr int64_t kAskPauseNs = 5 * kSecond / 2;  // agents ask every second
constexpr size_t kMostAtOnce = 1000;              // jobs in one statement
constexpr size_t kMostLoads = 50;         // in one step, so that the lease is renewed in time
constexpr size_t kMostHandOvers = 50;     // in one look
constexpr size_t kMostWaiting = 100'000;  // agents of one job

}  // namespace

void JobClaims::Job::AddWaitingTo(Reports* reports) {
  for (auto& [agent, report] : waiting) reports->push_back(std::move(report));
  waiting.clear();
}

// The job keeps its token, so that the database refuses what this daemon still writes about it.
void JobClaims::Job::SetOthers(const std::string& address, int64_t now_ns) {
  Job others;
  others.state = State::kOthers;
  others.token = token;
  others.written = std::move(written);
  others.owner = address;
  others.asked_ns = now_ns;
  *this = std::move(others);
}

void JobClaims::Job::NoteAsked(int64_t now_ns) {
  if (now_ns - asked_last_ns >= kAskPauseNs) asked_from_ns = now_ns;
  asked_last_ns = now_ns;
}

const JobClaims::Job& JobClaims::Find(const JobId& id) const {
  static const Job kUnknown;
  const auto at = jobs_.find(id);
  return at == jobs_.end() ? kUnknown : at->second;
}

bool JobClaims::Owns(const JobId& id) const {
  const MutexLock lock(mutex_);
  const Job& job = Find(id);
  return job.state == State::kOwned || job.state == State::kProvisional ||
         (job.state == State::kClaimed && job.is_judged);
}

bool JobClaims::MayAlert(const JobId& id) const {
  const MutexLock lock(mutex_);
  const State state = Find(id).state;
  const bool is_owned = state == State::kOwned;
  return (is_owned || state == State::kProvisional) && members_.MayAlert(is_owned);
}

bool JobClaims::IsUnproven(const JobId& id) const {
  const MutexLock lock(mutex_);
  const State state = Find(id).state;
  return (state == State::kProvisional || state == State::kClaimed) && !members_.IsAlone();
}

int64_t JobClaims::TokenOf(const JobId& id) const {
  const MutexLock lock(mutex_);
  return Find(id).token;
}

FleetJobs JobClaims::CountJobs() const {
  FleetJobs count;
  const MutexLock lock(mutex_);
  for (const auto& [id, job] : jobs_) {
    if (job.state == State::kOwned) ++count.owned;
    if (job.state == State::kProvisional || job.state == State::kClaimed) ++count.unproven;
    if (job.state == State::kLeaving) ++count.leaving;
    if (job.state == State::kSought) ++count.sought;
  }
  return count;
}

bool JobClaims::HasRoomFor(const JobId& job) const {
  const MutexLock lock(mutex_);
  return jobs_.size() < options_.most_jobs || jobs_.count(job) > 0;
}

std::optional<std::string> JobClaims::Seek(const JobReport& report) {
  const int64_t now_ns = options_.now_ns();
  const MutexLock lock(mutex_);
  Job& job = jobs_[report.job];
  if (job.state == State::kOwned || job.state == State::kProvisional) return "";
  if (job.state == State::kOthers) {
    job.NoteAsked(now_ns);
    if (now_ns - job.asked_ns < options_.ask_again_ns && !job.owner.empty()) return job.owner;
    job.state = State::kSought;
  }
  if (job.waiting.size() < kMostWaiting) job.waiting[report.agent] = report;
  return std::nullopt;
}

std::vector<JobId> JobClaims::Compare(const std::map<JobId, int64_t>& mine, Reports* answered) {
  std::vector<JobId> lost;
  const MutexLock lock(mutex_);
  for (const auto& [id, job] : jobs_) {
    const bool is_held =
        job.state == State::kOwned || job.state == State::kClaimed || job.state == State::kLeaving;
    const auto at = mine.find(id);
    if (is_held && (at == mine.end() || at->second != job.token)) lost.push_back(id);
  }
  if (std::exchange(has_compared_, true)) return lost;
  // The jobs of this daemon before it started again: the history brings what it knew.
  for (const auto& [id, token] : mine) {
    Job& job = jobs_[id];
    job.token = token;
    job.is_judged = job.state == State::kProvisional;  // what it found out waits to be proven
    job.state = job.is_judged ? State::kClaimed : State::kOwned;
    job.since_ns = options_.now_ns();
    job.AddWaitingTo(answered);
  }
  return lost;
}

std::vector<JobId> JobClaims::Those(size_t most, const std::function<bool(const Job&)>& is) const {
  std::vector<JobId> result;
  const MutexLock lock(mutex_);
  for (const auto& [id, job] : jobs_) {
    if (result.size() < most && is(job)) result.push_back(id);
  }
  return result;
}

std::vector<JobId> JobClaims::ToClaim() const {
  if (!members_.HoldsLease()) return {};
  return Those(kMostAtOnce,
               [](const Job& job) { return job.IsSought() || job.state == State::kProvisional; });
}

JobClaims::Claimed JobClaims::TakeAnswer(const std::map<JobId, OwnerRow>& owners) {
  Claimed result;
  const int64_t now_ns = options_.now_ns();
  const MutexLock lock(mutex_);
  for (const auto& [id, row] : owners) {
    Job& job = jobs_[id];
    const bool was_provisional = job.state == State::kProvisional;
    if (row.is_mine) {
      if (was_provisional) result.proven.push_back(id);
      job.is_judged = was_provisional;
      job.state = State::kClaimed;
      job.since_ns = now_ns;
      if (row.is_wanted) job.stays_until_ns = now_ns + kStaysNs;
      job.token = row.token;
    } else if (was_provisional) {
      result.lost.push_back(id);
    } else {
      job.state = State::kOthers;
      job.owner = row.address;
      job.asked_ns = now_ns;
      job.AddWaitingTo(&result.answered[row.address]);
    }
  }
  return result;
}

std::vector<JobId> JobClaims::ToLoad(bool* is_late) const {
  std::map<JobId, std::pair<Written, int64_t>> claimed;
  {
    const MutexLock lock(mutex_);
    for (const auto& [id, job] : jobs_) {
      if (job.state == State::kClaimed) claimed[id] = {job.written, job.since_ns};
    }
  }
  std::vector<JobId> result;
  for (const auto& [id, job] : claimed) {
    const auto& [written, since_ns] = job;
    if (result.size() >= kMostLoads) break;
    if (!written || written()) {
      result.push_back(id);
    } else if (options_.now_ns() - since_ns >= options_.writes_within_ns) {
      *is_late = true;
    }
  }
  return result;
}

JobClaims::Reports JobClaims::SetLoaded(const JobId& id) {
  Reports waiting;
  const MutexLock lock(mutex_);
  Job& job = jobs_[id];
  job.state = State::kOwned;
  job.written = nullptr;
  job.AddWaitingTo(&waiting);
  return waiting;
}

bool JobClaims::HasUnloaded() const { return CountJobs().unproven != 0; }

std::map<JobId, JobClaims::Reports> JobClaims::TakeWithoutDatabase() {
  std::map<JobId, Reports> taken;
  if (!members_.MustTakeJobs()) return taken;
  const MutexLock lock(mutex_);
  for (auto& [id, job] : jobs_) {
    if (!job.IsSought() && job.state != State::kClaimed) continue;
    job.state = State::kProvisional;
    job.AddWaitingTo(&taken[id]);
  }
  return taken;
}

std::vector<JobId> JobClaims::Owned() const {
  return Those(SIZE_MAX, [](const Job& job) { return job.state == State::kOwned; });
}

std::map<JobId, bool> JobClaims::OwnedOrSought() const {
  std::map<JobId, bool> result;
  const MutexLock lock(mutex_);
  for (const auto& [id, job] : jobs_) {
    if (job.state != State::kOthers) result[id] = job.state != State::kSought;
  }
  return result;
}

void JobClaims::Lose(const JobId& id) {
  const MutexLock lock(mutex_);
  Job& job = jobs_[id];
  std::map<std::string, JobReport> waiting = std::move(job.waiting);
  job.SetOthers("", options_.now_ns());
  if (!waiting.empty()) job.state = State::kSought;
  job.waiting = std::move(waiting);
}

JobClaims::Reports JobClaims::Give(const JobId& id, const std::string& owner) {
  Reports waiting;
  const MutexLock lock(mutex_);
  Job& job = jobs_[id];
  job.AddWaitingTo(&waiting);
  job.SetOthers(owner, options_.now_ns());
  return waiting;
}

void JobClaims::AwaitWrites(const JobId& job, Written written) {
  const MutexLock lock(mutex_);
  jobs_[job].written = std::move(written);
}

void JobClaims::Erase(const JobId& job) {
  const MutexLock lock(mutex_);
  jobs_.erase(job);
}

void JobClaims::EraseAll() {
  const MutexLock lock(mutex_);
  jobs_.clear();
}

bool JobClaims::IsForgotten(const Job& job) const {
  return job.state == State::kOthers && job.waiting.empty() &&
         options_.now_ns() - job.asked_ns > options_.forget_others_ns;
}

void JobClaims::ForgetOthers() {
  std::map<JobId, Written> stale;
  {
    const MutexLock lock(mutex_);
    for (const auto& [id, job] : jobs_) {
      if (IsForgotten(job)) stale[id] = job.written;
    }
  }
  for (const auto& [id, written] : stale) {
    if (written && !written()) continue;
    const MutexLock lock(mutex_);
    const auto at = jobs_.find(id);
    if (at != jobs_.end() && IsForgotten(at->second)) jobs_.erase(at);
  }
}

std::vector<JobId> JobClaims::ToWant() const {
  return Those(kMostAtOnce, [&, now_ns = options_.now_ns()](const Job& job) {
    const bool is_others = job.state == State::kOthers || job.state == State::kSought;
    return is_others && job.asked_from_ns != 0 && now_ns - job.asked_last_ns < kAskPauseNs &&
           now_ns - job.asked_from_ns >= options_.want_after_ns;
  });
}

std::vector<JobId> JobClaims::ToHandOver(const std::vector<std::string>& sharers) const {
  std::vector<JobId> result;
  if (!members_.HoldsLease()) return result;
  const int64_t now_ns = options_.now_ns();
  const MutexLock lock(mutex_);
  for (const auto& [id, job] : jobs_) {
    if (job.state != State::kOwned || result.size() >= kMostHandOvers) continue;
    if (now_ns < job.stays_until_ns) continue;
    if (PreferredDaemon(sharers, id.tenant, id.job) != 0) result.push_back(id);
  }
  return result;
}

bool JobClaims::BeginLeaving(const JobId& id, const std::string& to) {
  const MutexLock lock(mutex_);
  Job& job = jobs_[id];
  if (job.state != State::kOwned) return false;
  job.state = State::kLeaving;
  job.since_ns = options_.now_ns();
  job.to = to;
  return true;
}

void JobClaims::SetAgents(const JobId& job, std::vector<std::string> agents) {
  const MutexLock lock(mutex_);
  jobs_[job].agents = std::move(agents);
}

std::vector<JobClaims::Leaving> JobClaims::AllLeaving() const {
  std::vector<Leaving> result;
  const MutexLock lock(mutex_);
  for (const auto& [id, job] : jobs_) {
    if (job.state != State::kLeaving) continue;
    result.push_back({id, job.token, job.since_ns, job.to, job.agents, job.written});
  }
  return result;
}

void JobClaims::Stay(const JobId& id) {
  const MutexLock lock(mutex_);
  Job& job = jobs_[id];
  job.state = State::kClaimed;
  job.is_judged = false;
  job.since_ns = options_.now_ns();
}

}  // namespace rollcall
