// SPDX-License-Identifier: Apache-2.0
#include "base/duration_flag.h"

#include "absl/time/time.h"

namespace rollcall {

std::string CheckDuration(const std::string& text) {
  absl::Duration duration;
  if (absl::ParseDuration(text, &duration) && duration >= absl::Milliseconds(100) &&
      duration <= absl::Hours(24 * 365)) {
    return "";
  }
  return text + " is not a time of at least 100ms, for example 60s or 1m30s";
}

int64_t DurationNs(const std::string& text) {
  absl::Duration duration;
  absl::ParseDuration(text, &duration);
  return absl::ToInt64Nanoseconds(duration);
}

}  // namespace rollcall
