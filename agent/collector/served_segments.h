// SPDX-License-Identifier: Apache-2.0
// The processes that the ticks of a stream have named, and their segments. A daemon may ask only
// for these. Thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "agent/processes/process_id.h"
#include "agent/segments/segment_reader.h"
#include "base/mutex.h"

namespace rollcall {

// The segment of a process that the collector serves.
struct ServedSegment {
  std::shared_ptr<SegmentReader> reader;  // nullptr if it has none, or is not served
  int64_t ahead_ns = 0;                   // of its CLOCK_MONOTONIC over the agent's
};

class ServedSegments {
 public:
  void Add(ProcessId process, ServedSegment segment) {
    const MutexLock lock(mutex_);
    segments_[process] = std::move(segment);
  }
  void Remove(ProcessId process) {
    const MutexLock lock(mutex_);
    segments_.erase(process);
  }
  // Call it before ticks for another stream, which begin with a whole one.
  void Clear() {
    const MutexLock lock(mutex_);
    segments_.clear();
  }

  bool Has(ProcessId process) const {
    const MutexLock lock(mutex_);
    return segments_.count(process) != 0;
  }
  bool HasPid(pid_t pid) const {
    const MutexLock lock(mutex_);
    const auto at = segments_.lower_bound({pid, 0});
    return at != segments_.end() && at->first.pid == pid;
  }
  std::vector<pid_t> Pids() const {
    const MutexLock lock(mutex_);
    std::vector<pid_t> pids;
    for (const auto& [process, segment] : segments_) pids.push_back(process.pid);
    return pids;
  }
  // Its reader's Read() is the collector's own: others use what does not change the reader.
  ServedSegment Of(ProcessId process) const {
    const MutexLock lock(mutex_);
    const auto at = segments_.find(process);
    return at == segments_.end() ? ServedSegment() : at->second;
  }

 private:
  mutable Mutex mutex_;
  std::map<ProcessId, ServedSegment> segments_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rollcall
