// SPDX-License-Identifier: Apache-2.0
// Receives the hangs that the daemons blame this host for.
#pragma once

#include "rollcall/v1/agent.pb.h"

namespace rollcall {

// Thread-safe. `source` identifies a stream to a daemon; one host may have several. Set() comes
// about every second.
class HostHangsSink {
 public:
  virtual ~HostHangsSink() = default;
  virtual void Set(const void* source, const v1::HostHangs& hangs) = 0;
  virtual void Drop(const void* source) = 0;  // the stream is over
};

}  // namespace rollcall
