// SPDX-License-Identifier: Apache-2.0
// What an operator did.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace rollcall {

struct AuditEntry {
  std::string who;     // Identity::name
  std::string action;  // "take stacks"
  std::string object;  // "job=train ranks=0,3"
  std::string peer;    // as in Presented
  int64_t time_ns = 0;  // steady
};

// Called before the action begins. Must be thread-safe and must not block.
using AuditSink = std::function<void(const AuditEntry& entry)>;

}  // namespace rollcall
