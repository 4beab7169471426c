// SPDX-License-Identifier: Apache-2.0
// The threads that make the responses of the page. A user or an address with many requests does not
// delay those of others. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "base/worker.h"
#include "net/fair_turns.h"
#include "net/http_senders.h"
#include "net/http_types.h"

namespace rollcall {

class HttpWorkers {
 public:
  struct Task {
    uint64_t id = 0;  // of the connection
    std::string request;
    HttpCaller caller;
    size_t body_bytes = 0;        // of the request
    std::string credential = {};  // as HttpSenders has it; Post() finds it
  };
  struct Finished {
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
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);
  void Post(Task task) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  std::optional<FairTurns<Task>::Turn> Take() ABSL_LOCKS_EXCLUDED(mutex_);
  void End(const FairTurns<Task>::Turn& turn, const HttpReply& reply) ABSL_LOCKS_EXCLUDED(mutex_);
  void RunTurns() ABSL_LOCKS_EXCLUDED(mutex_);

  const HttpAnswer answer_;
  const Deliver deliver_;
  Mutex mutex_;
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  FairTurns<Task> turns_ ABSL_GUARDED_BY(mutex_);  // by user or address
  HttpSenders senders_ ABSL_GUARDED_BY(mutex_);
  Worker worker_;
};

}  // namespace rollcall
