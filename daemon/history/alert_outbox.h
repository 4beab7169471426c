// SPDX-License-Identifier: Apache-2.0
// Where alerts are kept until they are delivered, so that a restarted daemon sends what is unsent
// and nothing twice.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "daemon/history/history.h"

namespace rollcall {

class AlertOutbox {
 public:
  virtual ~AlertOutbox() = default;

  // Saves the alert, or replaces the one with its incident and sequence. Does not wait. Calls
  // `saved` once the disk has it, on any thread, perhaps never.
  virtual void Save(AlertRow alert, std::function<void()> saved) = 0;
  // One receiver needs the alert no more; empty if no receiver does. Does not wait.
  virtual void Mark(const std::string& incident, int32_t sequence, const std::string& receiver) = 0;
};

}  // namespace rollcall
