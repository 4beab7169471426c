// SPDX-License-Identifier: Apache-2.0
// The open connections of the page's server. Owned by the thread that serves them.
//
// An event or a response may be meant for a connection that is gone. Ids distinguish them: they
// grow and never come again, unlike descriptors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "net/http_connection.h"

namespace rollcall {

class HttpConnections {
 public:
  // Gives the connection its id. The result is valid until Remove().
  HttpConnection* Add(HttpConnection connection);
  void Remove(uint64_t id) { all_.erase(id); }

  // These return nullptr if there is no such connection.
  HttpConnection* Find(uint64_t id);
  // Returns the connection of the address with most connections that has waited longest for its
  // client; nullptr if all wait for the daemon.
  HttpConnection* FindReplaceable(int64_t now_ns);
  // Any whose client has stopped in the middle of a body.
  HttpConnection* FindStalledBody(int64_t now_ns);
  HttpConnection* First() { return all_.empty() ? nullptr : &all_.begin()->second; }

  // Returns the connections beyond a deadline.
  std::vector<HttpConnection*> FindLate(const HttpLimits& limits, int64_t now_ns);

  size_t size() const { return all_.size(); }

 private:
  std::map<uint64_t, HttpConnection> all_;  // by id
  uint64_t next_id_ = uint64_t{1} << 32;    // larger than any descriptor (HttpPoller::Key)
};

}  // namespace rollcall
