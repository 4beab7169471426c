// SPDX-License-Identifier: Apache-2.0
// The open connections of the page's server. Owned by the thread that serves them.
//
// The system gives the descriptor of a closed connection to the next one, so an event or a response
// may be meant for a connection that is gone. Ids tell them apart: they grow and never come again.
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
  void Remove(int fd) { all_.erase(fd); }

  // These return nullptr if there is no such connection.
  HttpConnection* Find(int fd);
  HttpConnection* Find(int fd, uint64_t id);
  // Returns the connection of the address with most connections that has waited longest for its
  // client; nullptr if all wait for the daemon.
  HttpConnection* FindReplaceable(int64_t now_ns);
  // Any whose client has stopped in the middle of a body.
  HttpConnection* FindStalledBody(int64_t now_ns);
  HttpConnection* First() { return all_.empty() ? nullptr : &all_.begin()->second; }

  // Returns the connections beyond a deadline.
  std::vector<HttpConnection*> FindLate(const HttpLimits& limits, int64_t now_ns);

  // Each later connection gets this id or a larger one.
  uint64_t next_id() const { return next_id_; }
  size_t size() const { return all_.size(); }

 private:
  std::map<int, HttpConnection> all_;  // by descriptor
  uint64_t next_id_ = 1;
};

}  // namespace rollcall
