// SPDX-License-Identifier: Apache-2.0
// What an operator did.
#pragma once

#include <functional>
#include <string>

namespace rollcall {

struct AuditEntry {
  std::string who;     // Identity::name
  std::string action;  // "take stacks"
  // "job team/train attempt 2, ranks 0,3"; may be long: the sink cuts it
  std::string object;
  std::string peer;  // as in Presented
};

// `entry.object` of a refused action: why. Likewise thread-safe; it may leave out what comes too
// often.
inline constexpr char kTooMany[] = "too many at once";

// Called before the action begins. Must be thread-safe and must not block.
using AuditSink = std::function<void(const AuditEntry& entry)>;

}  // namespace rollcall
