// SPDX-License-Identifier: Apache-2.0
// What the daemon counts of itself since its start. Thread-safe; its mutex is taken last.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace rollcall {

class DaemonCounters {
 public:
  struct Values {
    uint64_t ticks = 0;  // looks at all jobs
    double tick_seconds = 0;
    uint64_t dropped_agent_ticks = 0;  // that agents could not send
  };

  void AddTick(double seconds) ABSL_LOCKS_EXCLUDED(mutex_);
  // `dropped`: how many the host's agent says it has dropped since it began.
  void SetDropped(const std::string& host, uint64_t dropped) ABSL_LOCKS_EXCLUDED(mutex_);
  Values Get() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable absl::Mutex mutex_;
  Values values_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, uint64_t> dropped_ ABSL_GUARDED_BY(mutex_);  // by host, as told last
};

}  // namespace rollcall
