// SPDX-License-Identifier: Apache-2.0
// The thread of a communicator that moves its transfers over the network (network.h), as NCCL's
// proxy thread does for a device. It has that thread's name, "NCCL Progress", a space and the
// device's number, so a test can find it and hold it.
#pragma once

#include <functional>
#include <memory>

namespace rollcall::sim {

class Proxy {
 public:
  explicit Proxy(int device);
  // Does not wait: a thread that somebody holds stays behind with its work.
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  // The thread runs this, after what it was given before.
  void Run(std::function<void()> work);

 private:
  struct Shared;
  const std::shared_ptr<Shared> shared_;
};

}  // namespace rollcall::sim
