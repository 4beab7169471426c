// SPDX-License-Identifier: Apache-2.0
// Which alerts a daemon of the release before can send. During an upgrade it reads what this one
// has stored, and it would send an unsent alert of another kind as a new hang.
#pragma once

#include <cstdint>
#include <string>

namespace rollcall {

// The kinds of AlertRow::kind that the release before sends. Add a kind one release after its
// birth.
inline bool IsKnownBefore(const std::string& kind) {
  for (const char* known : {"confirmed", "updated", "resolved"}) {
    if (kind == known) return true;
  }
  return false;
}

// The column `sent` of the table `outbox`. The release before takes all but 0 as sent.
inline constexpr int64_t kAlertUnsent = 0;
inline constexpr int64_t kAlertSent = 1;
inline constexpr int64_t kAlertUnsentForLaterReleases = 2;

}  // namespace rollcall
