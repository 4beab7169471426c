// SPDX-License-Identifier: Apache-2.0
// Ends a request of httplib whose answer takes too long or has too many bytes. httplib's own limits
// begin again with each byte, and it keeps any number of headers.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>

#include "base/worker.h"

namespace httplib {
class Client;
}

namespace rollcall {

struct HttpAnswerLimits {
  uint64_t bytes = 0;  // as they come over the network, with headers and TLS
  std::chrono::milliseconds within{0};
};

// The watch begins with the object and ends with it. Owns a thread that looks every ten
// milliseconds.
class HttpWatchdog {
 public:
  // `client` must outlive this object, and make no connection before. `is_cancelled`: ends the
  // request, too; may be empty.
  HttpWatchdog(httplib::Client* client, HttpAnswerLimits limits,
               std::function<bool()> is_cancelled = nullptr);
  ~HttpWatchdog();
  HttpWatchdog(const HttpWatchdog&) = delete;
  HttpWatchdog& operator=(const HttpWatchdog&) = delete;

 private:
  void Watch(SteadyTime deadline);

  httplib::Client* const client_;
  const HttpAnswerLimits limits_;
  const std::function<bool()> is_cancelled_;
  std::atomic<int> socket_{-1};  // of the last connection
  Worker worker_;
};

// Bytes that a TCP socket has received so far; 0 if unknown.
uint64_t ReceivedBytes(int fd);

}  // namespace rollcall
