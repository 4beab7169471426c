// SPDX-License-Identifier: Apache-2.0
// httplib's routes, requests and responses, without its sockets and threads. Private to http.cc and
// http_login.cc.
#pragma once

#include <httplib.h>

#include <functional>
#include <string>
#include <utility>

#include "daemon/web/http_visitor.h"
#include "net/http_types.h"

namespace rollcall {

// What belongs to the request that this thread answers, besides httplib's request.
struct HttpExchange {
  HttpCaller caller;
  HttpCredentials credentials;
  HttpVisitor visitor;  // known once the request is admitted

  // The owner of the share that it takes once it is admitted: the user, and the address.
  Owner Viewer() const;
};

class HttpRouter : public httplib::Server {
 public:
  // Whether the receiver of an event stream may still read, from its request.
  using StreamGuard = std::function<std::function<bool()>(const HttpExchange& exchange)>;
  void set_stream_guard(StreamGuard guard) { guard_ = std::move(guard); }

  // Thread-safe once all routes are there.
  HttpReply Answer(const std::string& request, const HttpCaller& caller);

  // The exchange of the request that this thread answers; valid within handlers. httplib passes
  // nothing to them but its request.
  static HttpExchange& exchange();

 private:
  StreamGuard guard_;
};

// The address of the event streams.
inline constexpr char kHttpEvents[] = "/api/v1/events";

std::string GetCookie(const httplib::Request& request, const std::string& name);

// Fills in the response to a refused request.
void SetDenial(const HttpDenial& denial, httplib::Response* response);

}  // namespace rollcall
