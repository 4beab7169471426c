// SPDX-License-Identifier: Apache-2.0
// A listening socket, of the page or of gRPC. The thread that accepts its connections owns it.
#pragma once

#include <string>

#include "base/unique_fd.h"
#include "net/http_poller.h"

namespace rollcall {

// Connections that are not accepted yet: the agents of a fleet return at once. The system's limit
// (net.core.somaxconn) is 4,096.
inline constexpr int kListenBacklog = 4096;

class HttpListener {
 public:
  struct Accepted {
    int fd = -1;  // does not block; -1 if there is no connection
    std::string peer;
    bool lacks_descriptor = false;  // one waits, but this process may open no more files
  };

  // `fd` is a bound socket.
  HttpListener(UniqueFd fd, HttpPoller* poller) : fd_(std::move(fd)), poller_(poller) {}

  void Start();
  // Whether a client waits to be accepted.
  bool HasClient() const;
  Accepted Accept();
  // While others use all descriptors, the poller would report the socket again and again.
  void Pause();
  void Resume();
  // Afterwards clients are refused at once; those that wait to be accepted, too.
  void Close() { fd_ = UniqueFd(); }
  int fd() const { return fd_.get(); }

 private:
  UniqueFd fd_;
  HttpPoller* const poller_;
  bool is_paused_ = false;
};

}  // namespace rollcall
