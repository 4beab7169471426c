// SPDX-License-Identifier: Apache-2.0
// The daemon's page for people and JSON for scripts, over HTTP, plain or through TLS.
//
//   /                  the page; its views are behind the "#"
//   /login, /logout    sessions of browsers
//   /api/v1/...        http_api.h
//   /api/v1/events     server-sent events, one for each change
//   /api/v1/whoami     who the caller is
//   /report            one incident's report.html (?id=...)
//   /metrics           for Prometheus
//   /healthz           "ok"
//
// Listens on the given address only. http_routes.cc has the role that each address needs,
// http_visitor.h finds out who the caller is, http_site.h refuses pages of other sites. The page
// never uses texts of jobs as markup, and its Content-Security-Policy runs no inline script.
// http_front.h limits slow clients and the number of clients.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "daemon/web/http_options.h"
#include "net/http_front.h"

namespace rollcall {

class QuerySource;

class HttpServer {
 public:
  // `queries` must outlive this object.
  HttpServer(QuerySource* queries, HttpServerOptions options);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // `address` is HOST:PORT, with port 0 for any free one.
  absl::Status Start(const std::string& address);
  void Stop();
  const std::string& address() const { return address_; }
  bool has_tls() const;  // after Start()
  HttpFront::Counts counts() const;
  // Total bytes of the answers that it keeps for other viewers.
  size_t answer_bytes() const;
  // The response to one complete request, as a connection would get it. After Start().
  HttpReply Answer(const std::string& request, const HttpCaller& caller);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
  std::string address_;
};

}  // namespace rollcall
