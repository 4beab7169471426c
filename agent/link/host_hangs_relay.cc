// SPDX-License-Identifier: Apache-2.0
#include "agent/link/host_hangs_relay.h"

#include <algorithm>
#include <utility>

#include "base/durations.h"
#include "base/monotonic_clock.h"

namespace rollcall {

HostHangsRelay::HostHangsRelay(std::shared_ptr<HostHangsSink> sink, const ServedSegments* served)
    : sink_(std::move(sink)), served_(served) {}

void HostHangsRelay::TakeIn(const v1::HostHangs& hangs) {
  const MutexLock lock(mutex_);
  told_ = hangs;
}

void HostHangsRelay::PassOn() {
  if (sink_ == nullptr || MonotonicNs() - passed_on_ns_ < kSecond) return;
  passed_on_ns_ = MonotonicNs();
  std::optional<v1::HostHangs> told;
  {
    const MutexLock lock(mutex_);
    told = told_;
  }
  if (!told.has_value()) return;
  v1::HostHangs own;
  for (const v1::HostHangs::Hang& hang : told->hangs()) {
    const bool is_own = std::any_of(hang.pids().begin(), hang.pids().end(),
                                    [this](int32_t pid) { return served_->HasPid(pid); });
    if (is_own) *own.add_hangs() = hang;
  }
  sink_->Set(this, own);
}

void HostHangsRelay::Drop() {
  if (sink_ != nullptr) sink_->Drop(this);
  const MutexLock lock(mutex_);
  told_.reset();
}

}  // namespace rollcall
