// SPDX-License-Identifier: Apache-2.0
#include "daemon/jobs/attempt_records.h"

#include <utility>
#include <vector>

namespace rollcall {

void AttemptRecords::Restore(const std::map<JobKey, AttemptFacts>& attempts) {
  for (const auto& [key, facts] : attempts) {
    if (!Has(key)) restored_[key].Restore(key.attempt, facts);
  }
}

AttemptChanges AttemptRecords::TakeChanges(const AttemptsToSave& whole) {
  AttemptChanges changes = std::exchange(changes_, {});
  const auto add = [&changes](const JobId& name, const Attempts& attempts) {
    for (auto& [number, facts] : attempts.AllFacts()) {
      changes.changed.insert_or_assign(JobKey(name, number), facts);
    }
  };
  for (const JobId& name : whole.jobs) {
    const auto known = attempts_.find(name);
    if (known != attempts_.end()) add(name, known->second);
  }
  if (!whole.all) return changes;
  for (const auto& [name, attempts] : restored_) add(name, attempts);
  for (const auto& [name, attempts] : attempts_) add(name, attempts);
  return changes;
}

Attempts& AttemptRecords::Of(const JobId& name) {
  const auto [at, is_new] = attempts_.try_emplace(name);
  if (is_new) {
    auto restored = restored_.extract(name);
    if (!restored.empty()) at->second = std::move(restored.mapped());
  }
  return at->second;
}

std::set<JobKey> AttemptRecords::OfSameLaunch(const JobKey& key) const {
  std::set<JobKey> same;
  const auto own = attempts_.find(key);
  if (own == attempts_.end()) return same;
  const std::string launch = own->second.FactsOf(key.attempt).launch;
  if (launch.empty()) return same;
  for (auto at = attempts_.lower_bound(JobId{key.tenant, ""});
       at != attempts_.end() && at->first.tenant == key.tenant; ++at) {
    for (const auto& [number, facts] : at->second.AllFacts()) {
      if (facts.launch == launch) same.emplace(at->first, number);
    }
  }
  return same;
}

void AttemptRecords::RecordMember(const JobKey& key, const ProcessKey& process, int32_t rank) {
  AttemptFacts& changed = changes_.changed[key];
  std::vector<AttemptFacts::Member> members = std::move(changed.members);
  members.push_back({process, rank});
  changed = Of(key).FactsOf(key.attempt);
  changed.members = std::move(members);
}

void AttemptRecords::Forget(const JobKey& key) {
  Of(key).Forget(key.attempt);
  changes_.changed.erase(key);
  changes_.forgotten.insert(key);
}

}  // namespace rollcall
