// SPDX-License-Identifier: Apache-2.0
// The event streams of the page: tells each viewer that something has changed.
//
// One thread for all viewers. An event says only that there was a change. Viewers then request what
// they show, and share the cached answers. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/worker.h"
#include "net/http_types.h"

namespace rollcall {

class HttpViewers {
 public:
  struct Viewer {
    int fd = -1;
    HttpTopic topic;
    // Whether the viewer may still read; called before each event. Empty: always.
    std::function<bool()> is_allowed;
  };
  struct Event {
    int fd = -1;
    uint64_t id = 0;  // of the connection
    std::string bytes;
    bool is_end = false;  // the viewer may read no longer
  };
  // Takes an event. Called by the thread of this object.
  using Deliver = std::function<void(Event event)>;

  HttpViewers(int limit, HttpVersion version, Deliver deliver);
  ~HttpViewers();  // stops

  void Start();
  void Stop();

  void Add(uint64_t id, Viewer viewer);
  void Remove(uint64_t id);
  bool HasRoom() const;

 private:
  struct Watched {
    Viewer viewer;
    uint64_t version = 0;
    int64_t sent_ns = 0;  // time of the last event; 0: none yet
  };

  void SendEvents();
  std::map<HttpTopic, uint64_t> AskVersions() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsDue(const Watched& watched, const std::map<HttpTopic, uint64_t>& versions,
             int64_t now_ns) const;

  const int limit_;
  const HttpVersion version_;
  const Deliver deliver_;
  mutable Mutex mutex_;
  std::map<uint64_t, Watched> viewers_ ABSL_GUARDED_BY(mutex_);  // by connection
  Worker worker_;
};

}  // namespace rollcall
