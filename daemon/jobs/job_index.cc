// SPDX-License-Identifier: Apache-2.0
#include "daemon/jobs/job_index.h"

#include <algorithm>
#include <utility>

namespace rollcall {

void JobIndex::Add(const JobKey& key, std::shared_ptr<StoredJob> job) {
  const MutexLock lock(mutex_);
  if (jobs_[key].emplace(key.attempt, std::move(job)).second) ++attempts_;
  names_[key.job].insert(key);
}

bool JobIndex::Remove(const JobKey& key) {
  const MutexLock lock(mutex_);
  const auto job = jobs_.find(key);
  if (job == jobs_.end() || job->second.erase(key.attempt) == 0) return false;
  --attempts_;
  if (!job->second.empty()) return true;
  jobs_.erase(job);
  const auto names = names_.find(key.job);
  names->second.erase(key);
  if (names->second.empty()) names_.erase(names);
  return true;
}

bool JobIndex::IsInUse(const JobKey& key) const {
  const MutexLock lock(mutex_);
  const auto job = jobs_.find(key);
  if (job == jobs_.end()) return false;
  const auto at = job->second.find(key.attempt);
  return at != job->second.end() && at->second.use_count() > 1;
}

std::shared_ptr<StoredJob> JobIndex::At(const JobKey& key) const {
  const MutexLock lock(mutex_);
  const auto job = jobs_.find(key);
  if (job == jobs_.end()) return nullptr;
  const auto at = job->second.find(key.attempt);
  return at == job->second.end() ? nullptr : at->second;
}

size_t JobIndex::CountAttempts() const {
  const MutexLock lock(mutex_);
  return attempts_;
}

size_t JobIndex::CountJobs(const Tenants& tenants) const {
  const MutexLock lock(mutex_);
  if (tenants.AreAll()) return jobs_.size();
  return static_cast<size_t>(std::count_if(jobs_.begin(), jobs_.end(), [&tenants](const auto& job) {
    return tenants.Has(job.first.tenant);
  }));
}

void JobIndex::AddKeys(const JobId& name, const Attempts& attempts, std::vector<JobKey>* keys) {
  for (const auto& [number, job] : attempts) keys->emplace_back(name, number);
}

std::vector<JobKey> JobIndex::Keys() const {
  const MutexLock lock(mutex_);
  std::vector<JobKey> keys;
  for (const auto& [name, attempts] : jobs_) AddKeys(name, attempts, &keys);
  return keys;
}

std::vector<JobKey> JobIndex::NewestKeys(size_t most, const Tenants& tenants) const {
  const MutexLock lock(mutex_);
  std::vector<JobKey> keys;
  for (const auto& [name, attempts] : jobs_) {
    if (keys.size() == most) break;
    if (tenants.Has(name.tenant)) keys.emplace_back(name, attempts.rbegin()->first);
  }
  return keys;
}

std::vector<JobKey> JobIndex::KeysOf(const JobId& name) const {
  const MutexLock lock(mutex_);
  std::vector<JobKey> keys;
  const auto job = jobs_.find(name);
  if (job != jobs_.end()) AddKeys(name, job->second, &keys);
  return keys;
}

std::vector<JobKey> JobIndex::AllKeys(const std::string& job) const {
  const MutexLock lock(mutex_);
  std::vector<JobKey> keys;
  const auto names = names_.find(job);
  if (names == names_.end()) return keys;
  for (const JobId& name : names->second) AddKeys(name, jobs_.at(name), &keys);
  return keys;
}

std::vector<JobKey> JobIndex::KeysOfTenant(const std::string& tenant) const {
  const MutexLock lock(mutex_);
  std::vector<JobKey> keys;
  for (auto at = jobs_.lower_bound(JobId{tenant, ""});
       at != jobs_.end() && at->first.tenant == tenant; ++at) {
    AddKeys(at->first, at->second, &keys);
  }
  return keys;
}

std::vector<JobIndex::AttemptRef> JobIndex::AttemptsFor(const JobId& name) const {
  const MutexLock lock(mutex_);
  std::vector<AttemptRef> all;
  const auto job = jobs_.find(name);
  if (job == jobs_.end()) return all;
  for (auto at = job->second.rbegin(); at != job->second.rend(); ++at) {
    all.push_back({JobKey(name, at->first), at->second->has_twin()});
  }
  return all;
}

std::optional<JobKey> JobIndex::Find(const std::string& tenant, const std::string& job,
                                     std::optional<int32_t> attempt, const Tenants& tenants) const {
  const MutexLock lock(mutex_);
  const auto names = names_.find(job);
  if (names == names_.end()) return std::nullopt;
  std::optional<JobKey> found;
  for (const JobId& name : names->second) {
    if ((!tenant.empty() && name.tenant != tenant) || !tenants.Has(name.tenant)) continue;
    const Attempts& attempts = jobs_.at(name);
    const int32_t wanted = attempt.value_or(attempts.rbegin()->first);
    if (attempts.count(wanted) == 0) continue;
    if (!found.has_value() || name.tenant == kDefaultTenant) found = JobKey(name, wanted);
  }
  return found;
}

}  // namespace rollcall
