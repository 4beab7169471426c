// SPDX-License-Identifier: Apache-2.0
// What one agent of several, each with a daemon of its own, reports to the others about its stream,
// and learns from them.
#pragma once

#include "rollcall/v1/agent.pb.h"

namespace rollcall {

// Thread-safe.
class StreamWatcher {
 public:
  virtual ~StreamWatcher() = default;

  // The daemon has welcomed the stream. If false, the agent must connect anew, at once.
  virtual bool Welcomed(const v1::Welcome& welcome) = 0;
  virtual void Told(const v1::Owners& owners) = 0;
  // The stream, or the try to open it, has failed. The agent tries again.
  virtual void Broken() = 0;
  // The agent asks this before each tick: whether it must be whole.
  virtual bool WantsWhole() = 0;
};

}  // namespace rollcall
