// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/write_queue.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "daemon/history/history_write.h"

namespace rollcall {
namespace {

constexpr size_t kMostHeld = 1000;         // alerts, receipts and lists of hosts of one job
constexpr size_t kMostHeldIncidents = 20;  // of one job

}  // namespace

// Sets the fence at the moment in which the queue gets a write.
void WriteQueue::AddFence(const JobId& job, v1::HistoryWrite* write) const {
  if (options_.token_of && !job.job.empty()) SetFence(job, options_.token_of(job), write);
}

bool WriteQueue::IsHeld(const JobId& job) const {
  return held_.count(job) > 0 || (options_.is_unproven && options_.is_unproven(job));
}

void WriteQueue::Save(v1::Incident incident) {
  const JobId job = ReadJobKey(incident);
  const MutexLock lock(mutex_);
  if (has_ended_) return;
  if (!IsHeld(job)) return Keep(std::move(incident));
  std::map<std::string, v1::Incident>& held = held_[job].incidents;
  std::string id = incident.id();
  if (held.size() >= kMostHeldIncidents && held.count(id) == 0) return;
  held[std::move(id)] = std::move(incident);
}

void WriteQueue::Keep(v1::Incident incident) {
  const uint64_t version = next_order_++;
  const std::string id = incident.id();
  const uint64_t order = incidents_.try_emplace(id, version).first->second;
  v1::HistoryWrite write = WriteOfIncident(std::move(incident));
  AddFence(JobOf(write), &write);
  entries_[order] = {order, version, id, std::move(write), nullptr};
  if (incidents_.size() > options_.most_waiting) DropOldestIncident();
  Tell();
}

// Unconfirmed ones first.
void WriteQueue::DropOldestIncident() {
  std::pair<bool, uint64_t> first = {true, next_order_};
  for (const auto& [id, order] : incidents_) {
    first = std::min(first, {entries_.at(order).write->incident().has_confirmed_at(), order});
  }
  const auto at = entries_.find(first.second);
  if (first.first) {
    spdlog::error("dropped incident {} from the history: {} others wait; check the disk of {}",
                  at->second.incident, incidents_.size() - 1, options_.path);
  }
  incidents_.erase(at->second.incident);
  entries_.erase(at);
  ++lost_;
}

void WriteQueue::Add(std::optional<v1::HistoryWrite> write, std::function<void()> written) {
  const JobId job = write.has_value() ? JobOf(*write) : JobId();
  const MutexLock lock(mutex_);
  if (has_ended_) return;
  Entry entry;
  entry.write = std::move(write);
  entry.written = std::move(written);
  if (job.job.empty() || !IsHeld(job)) return Append(job, std::move(entry));
  std::deque<Entry>& waits = held_[job].others;
  if (waits.size() >= kMostHeld) waits.pop_front();
  waits.push_back(std::move(entry));
}

void WriteQueue::Append(const JobId& job, Entry entry) {
  if (entries_.size() - incidents_.size() >= options_.most_notes) DropOldestOther();
  if (entry.write.has_value()) AddFence(job, &*entry.write);
  const uint64_t order = next_order_++;
  entry.order = entry.version = order;
  entries_[order] = std::move(entry);
  Tell();
}

void WriteQueue::DropOldestOther() {
  if (!std::exchange(is_full_, true)) {
    spdlog::error(
        "dropped the oldest of {} unsaved alerts and hosts: a restarted daemon may "
        "send an alert again; check the disk of {}",
        entries_.size() - incidents_.size(), options_.path);
  }
  entries_.erase(std::find_if(entries_.begin(), entries_.end(),
                              [](const auto& one) { return one.second.incident.empty(); }));
  ++lost_;
}

void WriteQueue::ReleaseHeld(const JobId& job) {
  const MutexLock lock(mutex_);
  auto held = held_.extract(job);
  if (held.empty() || has_ended_) return;
  // An alert is about an incident, and comes after it.
  for (auto& [id, incident] : held.mapped().incidents) Keep(std::move(incident));
  for (Entry& entry : held.mapped().others) Append(job, std::move(entry));
}

void WriteQueue::DropHeld(const JobId& job) {
  const MutexLock lock(mutex_);
  held_.erase(job);
}

std::optional<WriteQueue::Entry> WriteQueue::First() const {
  const MutexLock lock(mutex_);
  if (entries_.empty()) return std::nullopt;
  return entries_.begin()->second;
}

void WriteQueue::Remove(const Entry& entry) {
  const MutexLock lock(mutex_);
  const auto at = entries_.find(entry.order);
  // It may have been dropped meanwhile.
  if (at == entries_.end() || at->second.version != entry.version) return;
  if (!entry.incident.empty()) incidents_.erase(entry.incident);
  entries_.erase(at);
  if (entries_.size() == incidents_.size()) is_full_ = false;
}

bool WriteQueue::IsEmpty() const {
  const MutexLock lock(mutex_);
  return entries_.empty();
}

bool WriteQueue::HasWritten(uint64_t order) const {
  const MutexLock lock(mutex_);
  return entries_.empty() || entries_.begin()->first >= order;
}

uint64_t WriteQueue::NextOrder() const {
  const MutexLock lock(mutex_);
  return next_order_;
}

std::map<std::string, v1::Incident> WriteQueue::Incidents() const {
  std::map<std::string, v1::Incident> result;
  const MutexLock lock(mutex_);
  for (const auto& [id, order] : incidents_) result[id] = entries_.at(order).write->incident();
  return result;
}

std::optional<v1::Incident> WriteQueue::Find(const std::string& id) const {
  const MutexLock lock(mutex_);
  const auto at = incidents_.find(id);
  if (at == incidents_.end()) return std::nullopt;
  return entries_.at(at->second).write->incident();
}

WriteQueue::Counts WriteQueue::counts() const {
  const MutexLock lock(mutex_);
  return {incidents_.size(), entries_.size() - incidents_.size(), lost_};
}

void WriteQueue::End() {
  const MutexLock lock(mutex_);
  has_ended_ = true;
  Tell();
}

bool WriteQueue::has_ended() const {
  const MutexLock lock(mutex_);
  return has_ended_;
}

void WriteQueue::AwaitNews(std::chrono::nanoseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  const MutexLock lock(mutex_);
  while (!has_news_ && has_come_.WaitUntil(mutex_, deadline)) {
  }
  has_news_ = false;
}

void WriteQueue::Wake() {
  const MutexLock lock(mutex_);
  Tell();
}

void WriteQueue::Tell() {
  has_news_ = true;
  has_come_.NotifyAll();
}

}  // namespace rollcall
