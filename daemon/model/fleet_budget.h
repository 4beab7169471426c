// SPDX-License-Identifier: Apache-2.0
// The memory that all jobs share: members, call records, lines of programs, texts of processes
// and names of communicators.
//
// Each user and each job has a share. Half of the memory for records is split evenly between the
// users, and then between the jobs of each, so that a small job beside a huge one keeps its
// history. The other half is split between all members. Of everything else one user has three times
// what is left, at most: three quarters, alone, and always something is left for the others.
//
// Thread-safe: the counts of other jobs may be some updates old.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "daemon/model/client_limits.h"

namespace rollcall {

// What the jobs of one user have.
struct UserBudget {
  std::atomic<size_t> jobs{0}, members{0}, site_bytes{0}, text_bytes{0};
};

class FleetBudget {
 public:
  explicit FleetBudget(size_t record_bytes = limits::kRecordBytes,
                       size_t members = limits::kMembers, size_t site_bytes = limits::kSiteBytes,
                       size_t text_bytes = limits::kTextBytes)
      : record_bytes_(record_bytes),
        most_members_(members),
        most_site_bytes_(site_bytes),
        most_text_bytes_(text_bytes) {}

  size_t members() const { return members_; }

 private:
  friend class BudgetShare;

  // nullptr without an owner, as in files: no share is kept for others.
  std::shared_ptr<UserBudget> OfUser(const std::string& user) ABSL_LOCKS_EXCLUDED(mutex_) {
    if (user.empty()) return nullptr;
    const MutexLock lock(mutex_);
    std::shared_ptr<UserBudget> budget = users_[user].lock();
    if (budget == nullptr) users_[user] = budget = std::make_shared<UserBudget>();
    for (auto at = users_.begin(); at != users_.end();) {
      at = at->second.expired() ? users_.erase(at) : std::next(at);
    }
    users_with_jobs_ = users_.size();
    return budget;
  }

  const size_t record_bytes_, most_members_, most_site_bytes_, most_text_bytes_;
  std::atomic<size_t> jobs_{0}, members_{0}, site_bytes_{0}, text_bytes_{0};
  std::atomic<size_t> users_with_jobs_{0};
  Mutex mutex_;
  std::map<std::string, std::weak_ptr<UserBudget>> users_ ABSL_GUARDED_BY(mutex_);
};

// One job's part of a number that all jobs share, and all jobs of its user.
class PartOfSum {
 public:
  // `of_user`: nullptr if it has no owner.
  PartOfSum(std::atomic<size_t>* sum, std::atomic<size_t>* of_user)
      : sum_(sum), of_user_(of_user) {}
  ~PartOfSum() { Remove(own_); }
  PartOfSum(const PartOfSum&) = delete;
  PartOfSum& operator=(const PartOfSum&) = delete;

  size_t own() const { return own_; }
  void Add(size_t count) {
    own_ += count;
    *sum_ += count;
    if (of_user_ != nullptr) *of_user_ += count;
  }
  void Remove(size_t count) {
    own_ -= count;
    *sum_ -= count;
    if (of_user_ != nullptr) *of_user_ -= count;
  }
  // `most`: of the sum.
  bool HasRoom(size_t count, size_t most) const {
    const size_t sum = *sum_;
    if (sum + count > most) return false;
    return of_user_ == nullptr || *of_user_ + count <= kShare * (most - sum);
  }

 private:
  static constexpr size_t kShare = 3;  // of one user, times what is left

  std::atomic<size_t>* const sum_;
  std::atomic<size_t>* const of_user_;
  size_t own_ = 0;
};

// The share of one job. One owner.
class BudgetShare {
 public:
  // `user`: whose job it is; empty if it has no owner.
  BudgetShare(std::shared_ptr<FleetBudget> fleet, const std::string& user)
      : fleet_(std::move(fleet)), user_(fleet_->OfUser(user)) {
    ++fleet_->jobs_;
    if (user_ != nullptr) ++user_->jobs;
  }
  ~BudgetShare() {
    --fleet_->jobs_;
    if (user_ != nullptr) --user_->jobs;
  }
  BudgetShare(const BudgetShare&) = delete;
  BudgetShare& operator=(const BudgetShare&) = delete;

  PartOfSum& members() { return members_; }
  bool HasRoomForMember() const { return members_.HasRoom(1, fleet_->most_members_); }

  PartOfSum& site_bytes() { return site_bytes_; }
  bool HasRoomForSite(size_t bytes) const {
    return site_bytes_.HasRoom(bytes, fleet_->most_site_bytes_);
  }

  PartOfSum& text_bytes() { return text_bytes_; }
  bool HasRoomForText(size_t bytes) const {
    return text_bytes_.HasRoom(bytes, fleet_->most_text_bytes_);
  }

  // Bytes for the records of each member of this job.
  size_t RecordBytes() const {
    const size_t half = fleet_->record_bytes_ / 2;
    // Jobs of no user count as one user each.
    const size_t jobs = std::max<size_t>(
        user_ == nullptr ? fleet_->jobs_.load() : fleet_->users_with_jobs_ * user_->jobs, 1);
    const size_t all = std::max<size_t>(fleet_->members_, 1);
    return half / all + half / jobs / std::max<size_t>(members_.own(), 1);
  }

 private:
  const std::shared_ptr<FleetBudget> fleet_;
  const std::shared_ptr<UserBudget> user_;  // nullptr if it has no owner
  PartOfSum members_{&fleet_->members_, user_ == nullptr ? nullptr : &user_->members};
  PartOfSum site_bytes_{&fleet_->site_bytes_, user_ == nullptr ? nullptr : &user_->site_bytes};
  PartOfSum text_bytes_{&fleet_->text_bytes_, user_ == nullptr ? nullptr : &user_->text_bytes};
};

}  // namespace rollcall
