// SPDX-License-Identifier: Apache-2.0
// What an operator did.
#pragma once

#include <functional>
#include <string>

namespace rollcall {

struct AuditEntry {
  std::string who;     // Identity::name
  std::string action;  // "take stacks"
  std::string object;  // "job team/train attempt 2, ranks 0,3"; may be long: whoever keeps it cuts it
  std::string peer;    // as in Presented
};

// Called before the action begins. Must be thread-safe and must not block.
using AuditSink = std::function<void(const AuditEntry& entry)>;

}  // namespace rollcall
