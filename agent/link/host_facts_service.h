// SPDX-License-Identifier: Apache-2.0
// Answers the daemon's requests for facts about this host. The daemon names processes and nothing
// else: the agent decides whether it looks, and at what.
//
// The agent looks if it has reported one of the processes on the stream that asks, if this is not
// switched off, and if the limit per minute permits it. An answer without facts has the reason in
// HostFacts::error. Nothing runs before the first request.
//
// Take() blocks for some seconds and belongs to one thread. Refuse() and Cancel() are thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/host_facts/gather.h"
#include "agent/processes/process_id.h"
#include "agent/processes/spare_threads.h"
#include "agent/stacks/stack_allowance.h"
#include "base/mutex.h"
#include "base/throttle.h"
#include "rollcall/v1/agent.pb.h"
#include "security/redact.h"

namespace rollcall {

struct HostFactsOptions {
  std::string proc_root = "/proc";
  bool is_on = true;
  int64_t max_per_minute = 6;  // looks at the host; 0 means no limit
  GatherOptions gather;
  std::shared_ptr<const Redactor> redactor = DefaultRedactor();
  // Counts max_per_minute. Shared with other services of this agent; nullptr means its own.
  std::shared_ptr<StackAllowance> allowance;
};

class HostFactsService {
 public:
  using IsReported = std::function<bool(ProcessId)>;

  // `is_reported`: thread-safe; whether the agent has reported this process to the daemon that
  // asks.
  HostFactsService(HostFactsOptions options, IsReported is_reported);

  v1::HostFacts Take(const std::vector<ProcessId>& processes);
  // An answer without facts, counted and logged.
  v1::HostFacts Refuse(const std::string& why) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends a Take() that waits.
  void Cancel() { threads_.Cancel(); }

 private:
  v1::HostFacts Gather(std::vector<pid_t> pids);

  const HostFactsOptions options_;
  const IsReported is_reported_;
  const std::shared_ptr<StackAllowance> allowance_;
  SpareThreads threads_;
  // Used by the thread of Take(), or by the thread that it waits for.
  std::shared_ptr<Gatherer> gatherer_;

  Mutex mutex_;
  Throttle refusals_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rollcall
