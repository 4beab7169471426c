// SPDX-License-Identifier: Apache-2.0
// Tells NVSentinel on this host which hangs the daemons blame the host for, as one of its health
// monitors. NVSentinel makes them conditions of the node, or Events; its rules decide what follows.
//
// Owns a thread, the only one that waits for NVSentinel. While NVSentinel is away, the thread tries
// again every five seconds.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "agent/collector/hang_marks.h"
#include "agent/link/host_hangs_sink.h"
#include "base/mutex.h"
#include "base/throttle.h"
#include "base/worker.h"

namespace datamodels {
class HealthEvent;
}
namespace grpc {
class ClientContext;
class Status;
}  // namespace grpc

namespace rollcall {

struct NvSentinelOptions {
  std::string socket;  // path of the platform connector's Unix socket
  std::string host;    // the node's name in Kubernetes
  // NVSentinel's rules may act on the events. If false, it only stores them.
  bool may_remediate = false;
};

// Returns the event for a step. Only broken hardware is fatal. Jobs and programs have any names: in
// the message their texts are cleaned and without ";", at which NVSentinel splits the message of a
// condition.
datamodels::HealthEvent HealthEventFor(const HangMarks::Step& step,
                                       const NvSentinelOptions& options, int64_t unix_ns);

class NvSentinel : public HostHangsSink {
 public:
  explicit NvSentinel(NvSentinelOptions options);
  ~NvSentinel() override;  // ends a call that waits

  void Set(const void* source, const v1::HostHangs& hangs) override;
  void Drop(const void* source) override;

 private:
  void TakeSteps();
  bool Send(const HangMarks::Step& step);
  grpc::Status Call(const datamodels::HealthEvent& event);

  const NvSentinelOptions options_;
  Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  HangMarks marks_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<grpc::ClientContext> context_ ABSL_GUARDED_BY(mutex_);  // of the call that waits

  Throttle failures_;  // used by the thread only
  Worker worker_;
};

}  // namespace rollcall
