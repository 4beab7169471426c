// SPDX-License-Identifier: Apache-2.0
// The threads that make the responses of the page. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/worker.h"
#include "net/http_types.h"

namespace rollcall {

class HttpWorkers {
 public:
  struct Task {
    int fd = -1;
    uint64_t id = 0;  // of the connection
    std::string request;
    HttpCaller caller;
    size_t body_bytes = 0;  // of the request
  };
  struct Finished {
    int fd = -1;
    uint64_t id = 0;
    HttpReply reply;
    size_t body_bytes = 0;  // of the task, which is gone
  };
  // Takes a response. Called by each thread of this object.
  using Deliver = std::function<void(Finished finished)>;

  HttpWorkers(int threads, HttpAnswer answer, Deliver deliver);
  ~HttpWorkers() { Stop(); }

  void Start();
  // Waits for the responses in progress, and forgets the tasks that wait.
  void Stop();
  void Post(Task task);

 private:
  const HttpAnswer answer_;
  const Deliver deliver_;
  Worker worker_;
};

}  // namespace rollcall
