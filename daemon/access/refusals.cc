// SPDX-License-Identifier: Apache-2.0
#include "daemon/access/refusals.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/durations.h"
#include "base/steady_clock.h"

namespace rollcall {
namespace {

constexpr int64_t kLogEveryNs = 60 * kSecond;

}  // namespace

void Refusals::Count(const std::string& reason) {
  const MutexLock lock(mutex_);
  ++counts_[reason];
}

void Refusals::Count(const std::string& reason, const std::string& text) {
  uint64_t left_out = 0;
  {
    const MutexLock lock(mutex_);
    ++counts_[reason];
    Log& log = logs_[reason];
    const int64_t now_ns = SteadyNs();
    if (log.at_ns != 0 && now_ns - log.at_ns < kLogEveryNs) {
      ++log.left_out;
      return;
    }
    log.at_ns = now_ns;
    left_out = std::exchange(log.left_out, 0);
  }
  spdlog::warn("refused: {}{}", text,
               left_out == 0 ? "" : absl::StrCat(" (and ", left_out, " more since the last line)"));
}

std::map<std::string, uint64_t> Refusals::Get() const {
  const MutexLock lock(mutex_);
  return counts_;
}

}  // namespace rollcall
