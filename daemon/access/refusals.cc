// SPDX-License-Identifier: Apache-2.0
#include "daemon/access/refusals.h"

#include <spdlog/spdlog.h>

#include <optional>

#include "absl/strings/str_cat.h"
#include "base/steady_clock.h"

namespace rollcall {
void Refusals::Count(const std::string& reason) {
  const MutexLock lock(mutex_);
  ++counts_[reason];
}

void Refusals::Count(const std::string& reason, const std::string& text) {
  std::optional<uint64_t> left_out;
  {
    const MutexLock lock(mutex_);
    ++counts_[reason];
    left_out = lines_[reason].Take(SteadyNs());
  }
  if (!left_out.has_value()) return;
  spdlog::warn(
      "refused: {}{}", text,
      *left_out == 0 ? "" : absl::StrCat(" (and ", *left_out, " more since the last line)"));
}

std::map<std::string, uint64_t> Refusals::Get() const {
  const MutexLock lock(mutex_);
  return counts_;
}

}  // namespace rollcall
