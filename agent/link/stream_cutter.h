// SPDX-License-Identifier: Apache-2.0
// Cuts off the streams of an agent that stops while its daemon does not answer. Thread-safe.
#pragma once

#include <chrono>
#include <memory>

#include "base/mutex.h"

namespace grpc {
class ClientContext;
}

namespace rollcall {

class StreamCutter {
 public:
  // The uplink thread runs, or has ended.
  void SetUplinkRuns(bool runs) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the context of the next stream, cancelled if streams are cut off by now.
  std::shared_ptr<grpc::ClientContext> NewContext() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits for the end of the uplink; after `patience`, no stream blocks any longer.
  void AwaitEnd(std::chrono::steady_clock::duration patience) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  Mutex mutex_;
  Condition ended_;
  bool uplink_runs_ ABSL_GUARDED_BY(mutex_) = false;
  bool cut_off_ ABSL_GUARDED_BY(mutex_) = false;
  std::shared_ptr<grpc::ClientContext> context_ ABSL_GUARDED_BY(mutex_);  // of the newest stream
};

}  // namespace rollcall
