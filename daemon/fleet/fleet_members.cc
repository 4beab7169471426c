// SPDX-License-Identifier: Apache-2.0
#include "daemon/fleet/fleet_members.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/escaping.h"
#include "base/digest/digest.h"
#include "base/rendezvous.h"

namespace rollcall {

const DaemonRow& PreferredOf(const std::vector<DaemonRow>& daemons, const JobId& job) {
  std::vector<std::string> addresses;
  for (const DaemonRow& daemon : daemons) addresses.push_back(daemon.address);
  return daemons[PreferredDaemon(addresses, job.tenant, job.job)];
}

FleetMembers::FleetMembers(const FleetOptions& options, bool is_alone)
    : options_(options), lease_(options.lease_ns, options.margin_ns), is_alone_(is_alone) {
  self_.name = options.database.daemon;
  self_.incarnation = absl::BytesToHexString(RandomBytes(16).value_or(""));
  self_.secret = absl::BytesToHexString(RandomBytes(32).value_or(""));
}

void FleetMembers::SetAddress(const std::string& address, const std::string& page) {
  self_.address = address;
  self_.page = page;
}

std::vector<DaemonRow> FleetMembers::Daemons() const {
  const MutexLock lock(mutex_);
  return daemons_;
}

std::optional<DaemonRow> FleetMembers::OwnerOf(const std::string& tenant,
                                               const std::string& job) const {
  const MutexLock lock(mutex_);
  const auto found = std::find_if(owners_.begin(), owners_.end(), [&](const auto& entry) {
    return entry.first.job == job && (tenant.empty() || entry.first.tenant == tenant);
  });
  if (found == owners_.end()) return std::nullopt;
  const auto row = std::find_if(daemons_.begin(), daemons_.end(), [&](const DaemonRow& daemon) {
    return daemon.name == found->second.daemon;
  });
  if (row == daemons_.end()) return std::nullopt;
  return *row;
}

bool FleetMembers::HoldsLease() const {
  const MutexLock lock(mutex_);
  return lease_.IsHeld(options_.now_ns());
}

bool FleetMembers::IsAlone() const {
  const MutexLock lock(mutex_);
  return is_alone_;
}

bool FleetMembers::MayAlert(bool is_owned) const {
  const MutexLock lock(mutex_);
  if (is_alone_ && is_cut_off_) return true;
  return (is_alone_ || is_owned) && lease_.IsHeld(options_.now_ns());
}

void FleetMembers::Renewed(int64_t asked_ns, std::vector<DaemonRow> daemons) {
  const MutexLock lock(mutex_);
  lease_.Renewed(asked_ns);
  daemons_ = std::move(daemons);
  is_alone_ = daemons_.size() == 1;
  std::map<std::string, int64_t> seen;
  for (const DaemonRow& daemon : daemons_) {
    const auto at = seen_.find(daemon.incarnation);
    seen[daemon.incarnation] = at == seen_.end() ? asked_ns : at->second;
  }
  seen_ = std::move(seen);
}

void FleetMembers::SetCutOff(bool is_cut_off) {
  const MutexLock lock(mutex_);
  is_cut_off_ = is_cut_off;
}

void FleetMembers::SetOwners(std::map<JobId, OwnerRow> owners) {
  const MutexLock lock(mutex_);
  owners_ = std::move(owners);
}

void FleetMembers::EndLease() {
  const MutexLock lock(mutex_);
  lease_.Ended();
}

void FleetMembers::SetAway() {
  const MutexLock lock(mutex_);
  if (away_since_ns_ == 0) away_since_ns_ = options_.now_ns();
}

void FleetMembers::SetBack() {
  const MutexLock lock(mutex_);
  away_since_ns_ = 0;
}

bool FleetMembers::HasDatabase() const {
  const MutexLock lock(mutex_);
  return away_since_ns_ == 0;
}

bool FleetMembers::MustTakeJobs() const {
  const MutexLock lock(mutex_);
  return away_since_ns_ != 0 && options_.now_ns() - away_since_ns_ >= options_.patience_ns;
}

std::vector<DaemonRow> FleetMembers::Heirs() const {
  std::vector<DaemonRow> others;
  const MutexLock lock(mutex_);
  const int64_t over_ns = lease_.HeldUntil() + options_.margin_ns;  // for the database, too
  if (away_since_ns_ == 0 || is_alone_ || options_.now_ns() < over_ns) return others;
  std::copy_if(daemons_.begin(), daemons_.end(), std::back_inserter(others),
               [this](const DaemonRow& daemon) { return daemon.name != self_.name; });
  return others;
}

std::vector<std::string> FleetMembers::Sharers() const {
  std::vector<std::string> addresses = {self_.address};
  const MutexLock lock(mutex_);
  for (const DaemonRow& daemon : daemons_) {
    const int64_t seen_for_ns = options_.now_ns() - seen_.at(daemon.incarnation);
    if (seen_for_ns >= options_.settled_after_ns && daemon.address != self_.address) {
      addresses.push_back(daemon.address);
    }
  }
  return addresses;
}

std::optional<DaemonRow> FleetMembers::NextFor(const JobId& job, const std::string& name) const {
  const MutexLock lock(mutex_);
  const auto named = std::find_if(daemons_.begin(), daemons_.end(),
                                  [&](const DaemonRow& daemon) { return daemon.name == name; });
  if (named != daemons_.end()) return *named;
  if (daemons_.empty()) return std::nullopt;
  return PreferredOf(daemons_, job);
}

}  // namespace rollcall
