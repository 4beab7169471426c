// SPDX-License-Identifier: Apache-2.0
// The connections of the page's server, plain or through TLS.
//
// One thread reads the requests and writes the responses of all connections; a few threads compute
// the responses. So a slow client costs a descriptor and never a thread. There is a deadline for a
// request with its handshake, for an idle connection and for reading a response; a byte that
// arrives slowly does not restart it. When all connections are in use, one of the address
// with most of them makes room, the one that has waited longest for its client. The first thread
// responds to /healthz itself, so that a busy daemon is healthy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "net/http_types.h"
#include "security/certificates/tls_context.h"

namespace rollcall {

class HttpFront {
 public:
  using Reply = HttpReply;
  struct Counts {
    uint64_t connections = 0;  // open now
    uint64_t dropped = 0;      // closed to make room, or for being too slow
  };
  using Answer = HttpAnswer;
  // The thread of event streams calls it.
  using Version = HttpVersion;

  // Why the daemon is not healthy, for /healthz; empty if it is. Must not block.
  using Problem = std::function<std::string()>;

  // `listener` is a listening socket. Takes ownership. `tls` gives the context of each new
  // connection; empty if connections are in plaintext. `problem` and `over_share` may be empty.
  HttpFront(int listener, const HttpLimits& limits, Answer answer, Version version,
            TlsSource tls = nullptr, Problem problem = nullptr, HttpOverShare over_share = nullptr);
  ~HttpFront();  // stops
  HttpFront(const HttpFront&) = delete;
  HttpFront& operator=(const HttpFront&) = delete;

  // Returns false if no file descriptor is free.
  bool Start();
  // Closes all connections and the listener, and waits for responses in progress.
  void Stop();

  bool HasRoomForViewer(const Owner& viewer) const;
  Counts counts() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rollcall
