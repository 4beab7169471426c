// SPDX-License-Identifier: Apache-2.0
// Passes on which hangs the daemon of an agent's stream blames this host for.
//
// A hang counts only while this agent reports one of its culprits itself: else an agent that may
// speak for every host could have this one marked.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "agent/collector/served_segments.h"
#include "agent/link/host_hangs_sink.h"
#include "base/mutex.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {

class HostHangsRelay {
 public:
  // `sink`: nullptr if no caller needs them. `served` outlives this object.
  HostHangsRelay(std::shared_ptr<HostHangsSink> sink, const ServedSegments* served);

  // Takes the daemon's present report. The reader of the stream calls this.
  void TakeIn(const v1::HostHangs& hangs) ABSL_LOCKS_EXCLUDED(mutex_);

  // The caller calls it about every second. For the uplink thread, like the next.
  void PassOn() ABSL_LOCKS_EXCLUDED(mutex_);
  // The stream is over.
  void Drop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const std::shared_ptr<HostHangsSink> sink_;
  const ServedSegments* const served_;
  int64_t passed_on_ns_ = 0;
  Mutex mutex_;
  std::optional<v1::HostHangs> told_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rollcall
