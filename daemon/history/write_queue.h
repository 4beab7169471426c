// SPDX-License-Identifier: Apache-2.0
// What waits to be written to the history, in the order of the calls. Of an incident only the
// newest state waits, in the place of the first one.
//
// Writes about a job that another daemon may have are held apart, until it is known whose the job
// is. None overtakes those of its job that are held.
//
// Thread-safe; only AwaitNews() waits. Its mutex is taken before that of the ownership of jobs.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "daemon/history/history_keeper_options.h"
#include "rollcall/v1/store.pb.h"

namespace rollcall {

class WriteQueue {
 public:
  struct Entry {
    uint64_t order = 0;                     // its place among all
    uint64_t version = 0;                   // grows with each state of an incident
    std::string incident;                   // its id; empty means a write of something else
    std::optional<v1::HistoryWrite> write;  // nullopt means a mark in the order of the writes
    std::function<void()> written;          // may be empty
  };
  struct Counts {
    size_t incidents = 0, others = 0;  // that wait
    uint64_t lost = 0;                 // dropped, because too many waited
  };

  // The options must outlive the queue.
  explicit WriteQueue(const HistoryKeeperOptions& options) : options_(options) {}

  void Save(v1::Incident incident);
  void Add(std::optional<v1::HistoryWrite> write, std::function<void()> written);
  void ReleaseHeld(const JobId& job);
  void DropHeld(const JobId& job);

  // The oldest of what waits.
  std::optional<Entry> First() const;
  // It is written. It goes on waiting if a newer state has taken its place.
  void Remove(const Entry& entry);

  bool IsEmpty() const;
  // Whether all is written that was in the queue when NextOrder() had this value.
  bool HasWritten(uint64_t order) const;
  uint64_t NextOrder() const;

  // The newest states of the incidents that wait, by id.
  std::map<std::string, v1::Incident> Incidents() const;
  std::optional<v1::Incident> Find(const std::string& id) const;
  Counts counts() const;

  // Takes no more from now on.
  void End();
  bool has_ended() const;
  // Returns once something was added, or after Wake() or End(), or after this time.
  void AwaitNews(std::chrono::nanoseconds patience);
  void Wake();

 private:
  struct Held {
    std::map<std::string, v1::Incident> incidents;  // newest states
    std::deque<Entry> others;
  };

  void Keep(v1::Incident incident) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Append(const JobId& job, Entry entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropOldestIncident() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropOldestOther() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Tell() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddFence(const JobId& job, v1::HistoryWrite* write) const;
  bool IsHeld(const JobId& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const HistoryKeeperOptions& options_;
  mutable Mutex mutex_;
  Condition has_come_;
  std::map<uint64_t, Entry> entries_ ABSL_GUARDED_BY(mutex_);          // by order
  std::map<std::string, uint64_t> incidents_ ABSL_GUARDED_BY(mutex_);  // the orders, by id
  std::map<JobId, Held> held_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_order_ ABSL_GUARDED_BY(mutex_) = 1;
  uint64_t lost_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_full_ ABSL_GUARDED_BY(mutex_) = false;  // dropped another write since all were written
  bool has_news_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace rollcall
