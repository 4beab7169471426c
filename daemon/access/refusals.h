// SPDX-License-Identifier: Apache-2.0
// Counts the requests that the daemon refused, by reason, and logs those of agents and the command
// line at most once a minute for each reason. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/mutex.h"
#include "base/throttle.h"

namespace rollcall {

// Reasons: label values of rollcall_refused_total. The page has more (HttpDenial).
inline constexpr char kRefusedCredential[] = "credential";  // presented nothing that is valid
inline constexpr char kRefusedRole[] = "role";              // may not make this call
inline constexpr char kRefusedAgentHost[] = "agent_host";   // claims a host that is not its own

class Refusals {
 public:
  // `reason` is one of a fixed set. `text` is for the log: who, and why; clean (clean_text.h).
  void Count(const std::string& reason, const std::string& text) ABSL_LOCKS_EXCLUDED(mutex_);
  // Only counts.
  void Count(const std::string& reason) ABSL_LOCKS_EXCLUDED(mutex_);
  std::map<std::string, uint64_t> Get() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable Mutex mutex_;
  std::map<std::string, uint64_t> counts_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Throttle> lines_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rollcall
