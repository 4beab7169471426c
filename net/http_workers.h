// SPDX-License-Identifier: Apache-2.0
// The threads that make the responses of the page. Thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
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
  ~HttpWorkers();  // stops

  void Start();
  // Waits for the responses in progress, and forgets the tasks that wait.
  void Stop();
  void Post(Task task);

 private:
  void Run();

  const int count_;
  const HttpAnswer answer_;
  const Deliver deliver_;
  Mutex mutex_;
  Condition wake_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace rollcall
