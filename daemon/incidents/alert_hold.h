// SPDX-License-Identifier: Apache-2.0
// When the first alert of a confirmed hang goes out, and when people are reminded of one. Pure:
// time is an argument.
//
// A contradiction between ranks is confirmed before the stacks of these ranks are there. The line
// of the culprit, the sentence and the first advice follow from the stacks, so the alert waits for
// them: never longer than kAlertWaitsNs, and not at all once the hang is over or the daemon stops.
#pragma once

#include <cstdint>

namespace rollcall {

inline constexpr int64_t kAlertWaitsNs = 2'000'000'000;

struct AlertHold {
  int64_t confirmed_ns = 0;
  bool owes_stacks = false;   // an agent has not sent those of a culprit or a waiting rank
  bool has_unjudged = false;  // no verdict rests on the newest stacks yet
  bool is_over = false;
  bool is_stopping = false;  // the daemon
};

inline bool HoldsAlert(const AlertHold& hold, int64_t now_ns, int64_t most_ns = kAlertWaitsNs) {
  if (hold.is_over || hold.is_stopping) return false;
  return (hold.owes_stacks || hold.has_unjudged) && now_ns - hold.confirmed_ns < most_ns;
}

// What alerts have reported of a hang that lasts.
struct Reminder {
  int64_t said_ns = 0;  // the time of its first alert, or of the newest reminder
  bool is_announced = false;
  bool is_acknowledged = false;
  bool is_silenced = false;
};

// `every_ns`: 0 for no reminders.
inline bool IsReminderDue(const Reminder& reminder, int64_t now_ns, int64_t every_ns) {
  const bool is_wanted =
      reminder.is_announced && !reminder.is_acknowledged && !reminder.is_silenced;
  return every_ns > 0 && is_wanted && now_ns - reminder.said_ns >= every_ns;
}

}  // namespace rollcall
