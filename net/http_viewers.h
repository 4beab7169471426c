// SPDX-License-Identifier: Apache-2.0
// The event streams of the page: notifies each viewer of a change.
//
// Where all places are taken, the viewer with most of them loses the newest stream to one with
// less.
//
// One thread for all viewers. An event reports only that there was a change. Viewers then request
// what they show, and share the cached answers. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/shares.h"
#include "base/worker.h"
#include "net/http_types.h"

namespace rollcall {

class HttpViewers {
 public:
  struct Viewer {
    HttpTopic topic;
    Owner owner;
    // Whether the viewer may still read; called before each event. Empty means always.
    std::function<bool()> is_allowed;
  };
  struct Event {
    uint64_t id = 0;  // of the connection
    std::string bytes;
    bool is_end = false;  // the viewer may read no longer
  };
  // Takes an event. Called by the thread of this object.
  using Deliver = std::function<void(Event event)>;

  // `over_share` may be empty.
  HttpViewers(int limit, HttpVersion version, Deliver deliver, HttpOverShare over_share);
  ~HttpViewers();  // stops

  void Start();
  void Stop();

  // False if there is no place for the viewer.
  bool Add(uint64_t id, Viewer viewer);
  void Remove(uint64_t id);
  // Tells of a viewer without a place, too.
  bool HasRoomFor(const Owner& owner) const;

 private:
  struct Watched {
    Viewer viewer;
    uint64_t version = 0;
    int64_t sent_ns = 0;    // time of the last event; 0 if there is none yet
    bool has_place = true;  // false: it goes with the next event
  };
  using Places = Shares<uint64_t>;

  bool IsFull() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return places_.total() >= static_cast<size_t>(limit_);
  }

  void SendEvents();
  std::map<HttpTopic, uint64_t> AskVersions() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsDue(const Watched& watched, const std::map<HttpTopic, uint64_t>& versions,
             int64_t now_ns) const;

  const int limit_;
  const HttpVersion version_;
  const Deliver deliver_;
  const HttpOverShare over_share_;
  mutable Mutex mutex_;
  std::map<uint64_t, Watched> viewers_ ABSL_GUARDED_BY(mutex_);  // by connection
  Places places_ ABSL_GUARDED_BY(mutex_);                        // by connection
  Worker worker_;
};

}  // namespace rollcall
