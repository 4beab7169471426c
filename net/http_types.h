// SPDX-License-Identifier: Apache-2.0
// What the parts of the page's server pass to each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "base/shares.h"

namespace rollcall {

inline constexpr char kJsonType[] = "application/json";

struct HttpLimits {
  int connections = 256;
  int threads = 16;
  int viewers = 100;                        // limit of event streams
  int64_t request_ns = 10'000'000'000;      // until a request is complete
  int64_t idle_ns = 15'000'000'000;         // between two requests
  int64_t stalled_ns = 10'000'000'000;      // without a byte of progress by the client
  int64_t answer_ns = 120'000'000'000;      // until the client has read the whole response
  size_t unsent_bytes = size_t{256} << 20;  // limit over all responses that wait for clients
  size_t body_bytes = size_t{64} << 10;     // limit of the body of a request
  // Limit over the bodies of all requests that are being read or answered.
  size_t bodies_bytes = size_t{16} << 20;
};

// The sender of a request, as far as the connection shows it.
struct HttpCaller {
  std::string peer;             // as gRPC writes it: "ipv4:127.0.0.1:41922", "ipv6:[::1]:41922"
  std::string local;            // the address at which the connection arrived, likewise
  std::string certificate_pem;  // of the client, its chain verified, or empty
  bool is_encrypted = false;
};

// What an event stream reports changes of.
struct HttpTopic {
  std::string job;                   // empty means all jobs
  std::vector<std::string> tenants;  // of the viewer, as in Identity

  bool operator<(const HttpTopic& other) const {
    return std::tie(job, tenants) < std::tie(other.job, other.tenants);
  }
};

// A number that changes when something of the topic does.
using HttpVersion = std::function<uint64_t(const HttpTopic& topic)>;

struct HttpReply {
  std::string bytes;
  bool close = false;      // close the connection after the response
  bool is_stream = false;  // head of an event stream that reports changes of `topic`
  HttpTopic topic;
  Owner viewer;  // who sent the request, and from where; the user is empty if unknown
  // For a stream: whether its viewer may still read, called before each event. Empty means always.
  std::function<bool()> is_allowed;
};

// Told of each viewer who gets no stream, or loses one, because that viewer has most of them.
// Thread-safe.
using HttpOverShare = std::function<void(const Owner& viewer)>;

// Returns the response to one complete request. Any thread of the server calls it.
using HttpAnswer = std::function<HttpReply(const std::string& request, const HttpCaller& caller)>;

}  // namespace rollcall
