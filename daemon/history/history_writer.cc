// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/history_writer.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <string>
#include <utility>

#include "base/steady_clock.h"

namespace rollcall {
namespace {

constexpr int64_t kTrimEveryNs = 3'600'000'000'000;

}  // namespace

void HistoryWriter::Run() {
  bool is_last_try = false;
  while (true) {
    const bool has_work = !queue_->IsEmpty() || file_->writing() == nullptr || file_->IsDamaged();
    if (queue_->has_ended()) {
      if (queue_->IsEmpty() || (is_last_try && !problem().ok())) return;
      if (!std::exchange(is_last_try, true)) SetProblem(absl::OkStatus());
    } else if (!has_work) {
      // Ends in time to delete old incidents.
      queue_->AwaitNews(std::chrono::nanoseconds(kTrimEveryNs));
    } else if (const int64_t pause_ns = next_try_ns_ - SteadyNs(); pause_ns > 0) {
      queue_->AwaitNews(std::chrono::nanoseconds(pause_ns));
      continue;
    }
    Step();
  }
}

void HistoryWriter::Step() {
  if (file_->IsDamaged()) file_->Replace();
  if (file_->writing() != nullptr && !file_->writing()->IsInPlace()) file_->Close();
  const bool was_open = file_->writing() != nullptr;
  absl::Status status = was_open ? absl::OkStatus() : file_->Open();
  if (status.ok()) status = WriteFirst();
  if (file_->forwarder() != nullptr) file_->forwarder()->Wake();
  if (status.ok()) status = TrimIfDue();
  if (absl::IsDataLoss(status)) file_->Replace();
  Note(status, !was_open && file_->writing() != nullptr);
}

absl::Status HistoryWriter::WriteFirst() {
  const std::optional<WriteQueue::Entry> entry = queue_->First();
  if (!entry.has_value()) return absl::OkStatus();
  const absl::Status status =
      entry->write.has_value() ? file_->writing()->Apply(*entry->write) : absl::OkStatus();
  if (!status.ok()) return status;
  queue_->Remove(*entry);
  if (entry->written) entry->written();
  return status;
}

absl::Status HistoryWriter::TrimIfDue() {
  const int64_t now_ns = SteadyNs();
  if (now_ns - trimmed_ns_ < kTrimEveryNs) return absl::OkStatus();
  trimmed_ns_ = now_ns;
  return file_->writing()->Trim(WallNs(now_ns));
}

void HistoryWriter::Note(const absl::Status& status, bool is_new_file) {
  // A damaged file is renamed by now: the next attempt begins a new one.
  const bool tries_at_once = status.ok() || (failures_ == 0 && absl::IsDataLoss(status));
  failures_ = status.ok() ? 0 : failures_ + 1;
  next_try_ns_ = tries_at_once ? 0 : SteadyNs() + options_.retry.PauseNs(failures_);
  if (!status.ok() && !is_logged_) {
    spdlog::error("cannot write the history {}: {}{}", options_.path, std::string(status.message()),
                  queue_->has_ended() ? "" : "; trying again later");
  }
  is_logged_ = !status.ok();
  const MutexLock lock(mutex_);
  if (is_new_file && has_tried_) is_recreated_ = true;
  has_tried_ = true;
  problem_ = tries_at_once ? absl::OkStatus() : status;
  if (!status.ok()) ++failed_;
  tried_.NotifyAll();
}

std::optional<absl::Status> HistoryWriter::AwaitFirstTry(SteadyTime deadline) const {
  const MutexLock lock(mutex_);
  while (!has_tried_ && tried_.WaitUntil(mutex_, deadline)) {
  }
  if (!has_tried_) return std::nullopt;
  return problem_;
}

void HistoryWriter::SetProblem(const absl::Status& problem) {
  const MutexLock lock(mutex_);
  problem_ = problem;
}

absl::Status HistoryWriter::problem() const {
  const MutexLock lock(mutex_);
  return problem_;
}

uint64_t HistoryWriter::failed() const {
  const MutexLock lock(mutex_);
  return failed_;
}

bool HistoryWriter::ConsumeRecreated() {
  const MutexLock lock(mutex_);
  return std::exchange(is_recreated_, false);
}

}  // namespace rollcall
