// SPDX-License-Identifier: Apache-2.0
#include "agent/link/job_owners.h"

#include <algorithm>
#include <limits>

#include "base/names.h"
#include "base/rendezvous.h"

namespace rollcall {
namespace {

constexpr char kJobIfUnnamed[] = "default";
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

const std::string& Preferred(const std::vector<std::string>& daemons, const std::string& tenant,
                             const std::string& job) {
  return daemons[PreferredDaemon(daemons, tenant, job)];
}

}  // namespace

JobOwners::JobOwners(std::string host, std::vector<std::string> given,
                     std::function<void()> changed)
    : host_(std::move(host)), changed_(std::move(changed)), daemons_(std::move(given)) {}

void JobOwners::Change() {
  ++version_;
  if (changed_) changed_();
}

void JobOwners::SetGiven(std::vector<std::string> given) {
  {
    const MutexLock lock(mutex_);
    if (is_frozen_ || !daemons_.SetGiven(std::move(given))) return;
    CountTurns();
  }
  Change();
}

void JobOwners::Opened(const std::string& stream, int64_t now_ns) {
  const MutexLock lock(mutex_);
  daemons_.Opened(stream, now_ns);
}

void JobOwners::Welcomed(const std::string& stream, const std::string& address,
                         const std::vector<std::string>& daemons, bool stays, int64_t now_ns) {
  {
    const MutexLock lock(mutex_);
    if (is_frozen_ || !daemons_.Welcomed(stream, address, stays, now_ns)) return;
    daemons_.SetDaemons(daemons);
    was_welcome_ = true;
    CountTurns();
  }
  Change();
}

void JobOwners::SetDaemons(const std::vector<std::string>& daemons) {
  {
    const MutexLock lock(mutex_);
    if (is_frozen_ || !daemons_.SetDaemons(daemons)) return;
    CountTurns();
  }
  Change();
}

void JobOwners::Told(const std::string& stream, const std::string& tenant, const std::string& job,
                     const std::string& daemon) {
  {
    const MutexLock lock(mutex_);
    const auto at = jobs_.find(KeyOf(tenant, job));
    if (at == jobs_.end() || is_frozen_) return;
    if (!daemon.empty() && !daemons_.IsUsable(daemon)) return;
    const std::string& owner = daemon.empty() ? daemons_.DaemonOf(stream) : daemon;
    Job& about = at->second;
    if (about.told == owner && about.told_by == stream) return;
    about.told = owner;
    about.told_by = stream;
    CountTurn(at->first, &about);
  }
  Change();
}

void JobOwners::Broken(const std::string& stream, int64_t now_ns) {
  {
    const MutexLock lock(mutex_);
    if (is_frozen_ || !daemons_.Broken(stream, now_ns)) return;
    CountTurns();
  }
  Change();
}

void JobOwners::Closed(const std::string& stream) {
  {
    const MutexLock lock(mutex_);
    if (!daemons_.Closed(stream)) return;
    CountTurns();
  }
  Change();
}

int64_t JobOwners::Expire(int64_t now_ns) {
  int64_t next_ns = kNever;
  bool has_changed = false;
  {
    const MutexLock lock(mutex_);
    if (is_frozen_) return next_ns;
    has_changed = daemons_.Expire(now_ns, &next_ns);
    CountTurns();
    for (auto at = jobs_.begin(); at != jobs_.end();) {
      at = now_ns - at->second.seen_ns > kJobStays ? jobs_.erase(at) : std::next(at);
    }
  }
  if (has_changed) Change();
  return next_ns;
}

void JobOwners::Freeze() {
  const MutexLock lock(mutex_);
  is_frozen_ = true;
}

JobOwners::Key JobOwners::KeyOf(const std::string& tenant, const std::string& job) {
  return {tenant.empty() ? kTenantIfUnnamed : tenant, job.empty() ? kJobIfUnnamed : job};
}

std::string JobOwners::FindHome() const { return Preferred(daemons_.Living(), "", host_); }

// `job` may be nullptr. Before the first welcome the agent does not have all daemons: its only
// stream delivers the list.
std::string JobOwners::FindOwner(const Key& key, const Job* job) const {
  if (!was_welcome_) return FindHome();
  if (job != nullptr && !job->told.empty() && !daemons_.IsAway(job->told)) return job->told;
  return Preferred(daemons_.Living(), key.first, key.second);
}

void JobOwners::CountTurn(const Key& key, Job* job) {
  std::string owner = FindOwner(key, job);
  if (owner == job->owner) return;
  job->owner = std::move(owner);
  ++job->turn;
}

void JobOwners::CountTurns() {
  for (auto& [key, job] : jobs_) CountTurn(key, &job);
}

uint64_t JobOwners::Takes(const std::string& stream, const std::string& tenant,
                          const std::string& job, int64_t now_ns) {
  uint64_t turn = 0;
  bool is_new = false;
  {
    const MutexLock lock(mutex_);
    const Key key = KeyOf(tenant, job);
    const auto [at, added] = jobs_.try_emplace(key);
    is_new = added;
    at->second.seen_ns = now_ns;
    CountTurn(key, &at->second);
    const std::string& owner = at->second.owner;
    const std::string* taking =
        owner == daemons_.DaemonOf(stream) ? daemons_.StreamTo(owner) : nullptr;
    if (taking != nullptr && *taking == stream) turn = at->second.turn;
  }
  if (is_new) Change();
  return turn;
}

std::string JobOwners::Owner(const std::string& tenant, const std::string& job) const {
  const MutexLock lock(mutex_);
  const Key key = KeyOf(tenant, job);
  const auto at = jobs_.find(key);
  return FindOwner(key, at == jobs_.end() ? nullptr : &at->second);
}

std::string JobOwners::Home() const {
  const MutexLock lock(mutex_);
  return FindHome();
}

std::set<std::string> JobOwners::Needed(int64_t now_ns) const {
  std::set<std::string> needed = Taking(now_ns);
  const MutexLock lock(mutex_);
  const std::vector<std::string> all = daemons_.All();
  bool has_jobs = false;
  for (const auto& [key, job] : jobs_) {
    if (!was_welcome_ || now_ns - job.seen_ns > kJobStays) continue;
    has_jobs = true;
    const bool is_told = !job.told.empty();
    if (is_told && !daemons_.IsAway(job.told)) continue;
    daemons_.AddStreamTo(is_told ? job.told : Preferred(all, key.first, key.second), &needed);
  }
  if (was_welcome_ && !has_jobs) daemons_.AddStreamTo(Preferred(all, "", host_), &needed);
  const bool all_away =
      std::all_of(all.begin(), all.end(),
                  [this](const std::string& daemon)
                      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return daemons_.IsAway(daemon); });
  if (!all_away) return needed;
  for (const std::string& daemon : all) daemons_.AddStreamTo(daemon, &needed);
  needed.insert(daemons_.given().begin(), daemons_.given().end());
  return needed;
}

std::set<std::string> JobOwners::Taking(int64_t now_ns) const {
  const MutexLock lock(mutex_);
  std::set<std::string> owners;
  for (const auto& [key, job] : jobs_) {
    if (now_ns - job.seen_ns <= kJobStays) owners.insert(FindOwner(key, &job));
  }
  if (owners.empty()) owners.insert(FindHome());
  std::set<std::string> taking;
  for (const std::string& daemon : owners) daemons_.AddStreamTo(daemon, &taking);
  return taking;
}

bool JobOwners::MustAskAgain(const std::string& stream, int64_t now_ns) const {
  const MutexLock lock(mutex_);
  return std::any_of(jobs_.begin(), jobs_.end(),
                     [&](const auto& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                       const Job& job = entry.second;
                       return job.told_by == stream && job.told != daemons_.DaemonOf(stream) &&
                              daemons_.IsAway(job.told) && now_ns - job.seen_ns <= kJobStays &&
                              FindOwner(entry.first, &job) == daemons_.DaemonOf(stream);
                     });
}

bool JobOwners::IsInFleet(const std::string& address) const {
  const MutexLock lock(mutex_);
  return daemons_.IsInFleet(address);
}

}  // namespace rollcall
