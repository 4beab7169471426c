// SPDX-License-Identifier: Apache-2.0
// The daemon's page for people and JSON for scripts, over plain HTTP.
//
//   /                  the page; its views are behind the "#"
//   /api/v1/...        http_api.h
//   /api/v1/events     server-sent events: something has changed, ask again
//   /report            one incident's report.html (?id=...)
//   /metrics           for Prometheus
//   /healthz           "ok"
//
// Listens on what it is told and nothing else. With a token, whoever asks must show it: as
// "Authorization: Bearer TOKEN", or in a cookie that /?token=TOKEN sets. Texts come from jobs: the
// page never takes them for markup, and its Content-Security-Policy runs no inline script. Clients
// that are slow, or too many, are http_front.h's business.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "daemon/server/http_front.h"

namespace rollcall {

class QuerySource;

class HttpServer {
 public:
  // `queries` outlives this object. `token`: "" for none. `connections`: at most so many at once.
  HttpServer(QuerySource* queries, std::string token, int connections);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // "HOST:PORT", port 0 for any free one.
  absl::Status Start(const std::string& address);
  void Stop();
  const std::string& address() const { return address_; }
  HttpFront::Counts counts() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
  const int connections_;
  std::string address_;
};

}  // namespace rollcall
