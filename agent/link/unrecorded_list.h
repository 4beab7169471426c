// SPDX-License-Identifier: Apache-2.0
// The ranks without the library that the agent has reported on its stream. It may ask for the
// stacks of these, too.
//
// Has() and Pids() are thread-safe; the rest belongs to the uplink thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/processes/process_id.h"
#include "base/durations.h"
#include "base/mutex.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {

class UnrecordedList {
 public:
  // Whether it is time to look for a change.
  bool IsDue(int64_t now_ns) const {
    constexpr int64_t kListEvery = 10 * kSecond;
    return listed_ns_ == 0 || now_ns - listed_ns_ >= kListEvery;
  }
  // What the stream must have: nullopt if it has this list.
  std::optional<v1::AgentMessage> Update(int64_t now_ns, v1::UnrecordedProcesses list)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    listed_ns_ = now_ns;
    std::string text = list.SerializeAsString();
    if (text == text_) return std::nullopt;
    text_ = std::move(text);
    std::set<ProcessId> processes;
    for (const v1::UnrecordedProcess& process : list.processes()) {
      processes.insert({process.pid(), process.start_time()});
    }
    {
      const MutexLock lock(mutex_);
      processes_ = std::move(processes);
    }
    v1::AgentMessage message;
    *message.mutable_unrecorded() = std::move(list);
    return message;
  }
  // The stream is over.
  void Clear() ABSL_LOCKS_EXCLUDED(mutex_) {
    listed_ns_ = 0;
    text_.clear();
    const MutexLock lock(mutex_);
    processes_.clear();
  }

  bool Has(ProcessId process) const ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(mutex_);
    return processes_.count(process) != 0;
  }
  std::vector<pid_t> Pids() const ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(mutex_);
    std::vector<pid_t> pids;
    for (const ProcessId process : processes_) pids.push_back(process.pid);
    return pids;
  }

 private:
  int64_t listed_ns_ = 0;  // 0 if never on this stream
  std::string text_;       // the list as the stream has it
  mutable Mutex mutex_;
  std::set<ProcessId> processes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rollcall
