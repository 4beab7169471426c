// SPDX-License-Identifier: Apache-2.0
// The memory that all jobs share: members, call records, lines of programs, texts of processes
// and names of communicators.
//
// Each job has a share. Half of the memory for records is split evenly between the jobs, so that a
// small job beside a huge one keeps its history. The other half is split between all members.
//
// Thread-safe, without a lock: the counts of other jobs may be some updates old.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>

#include "daemon/model/client_limits.h"

namespace rollcall {

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
  const size_t record_bytes_, most_members_, most_site_bytes_, most_text_bytes_;
  std::atomic<size_t> jobs_{0}, members_{0}, site_bytes_{0}, text_bytes_{0};
};

// One job's part of a number that all jobs share.
class PartOfSum {
 public:
  explicit PartOfSum(std::atomic<size_t>* sum) : sum_(sum) {}
  ~PartOfSum() { *sum_ -= own_; }
  PartOfSum(const PartOfSum&) = delete;
  PartOfSum& operator=(const PartOfSum&) = delete;

  size_t own() const { return own_; }
  void Add(size_t count) {
    own_ += count;
    *sum_ += count;
  }
  void Remove(size_t count) {
    own_ -= count;
    *sum_ -= count;
  }

 private:
  std::atomic<size_t>* const sum_;
  size_t own_ = 0;
};

// The share of one job. One owner.
class BudgetShare {
 public:
  explicit BudgetShare(std::shared_ptr<FleetBudget> fleet) : fleet_(std::move(fleet)) {
    ++fleet_->jobs_;
  }
  ~BudgetShare() { --fleet_->jobs_; }
  BudgetShare(const BudgetShare&) = delete;
  BudgetShare& operator=(const BudgetShare&) = delete;

  PartOfSum& members() { return members_; }
  bool HasRoomForMember() const { return fleet_->members_ < fleet_->most_members_; }

  PartOfSum& site_bytes() { return site_bytes_; }
  bool HasRoomForSite(size_t bytes) const {
    return fleet_->site_bytes_ + bytes <= fleet_->most_site_bytes_;
  }

  PartOfSum& text_bytes() { return text_bytes_; }
  bool HasRoomForText(size_t bytes) const {
    return fleet_->text_bytes_ + bytes <= fleet_->most_text_bytes_;
  }

  // Bytes for the records of each member of this job.
  size_t RecordBytes() const {
    const size_t half = fleet_->record_bytes_ / 2;
    const size_t jobs = std::max<size_t>(fleet_->jobs_, 1);
    const size_t all = std::max<size_t>(fleet_->members_, 1);
    return half / all + half / jobs / std::max<size_t>(members_.own(), 1);
  }

 private:
  const std::shared_ptr<FleetBudget> fleet_;
  PartOfSum members_{&fleet_->members_}, site_bytes_{&fleet_->site_bytes_};
  PartOfSum text_bytes_{&fleet_->text_bytes_};
};

}  // namespace rollcall
