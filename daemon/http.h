// The daemon's pages for people and JSON for scripts, over plain HTTP.
//
//   /                       jobs and incidents
//   /incidents/ID           one incident, as its report shows it
//   /api/v1/status          query.proto's StatusResponse
//   /api/v1/incidents       query.proto's ListIncidentsResponse
//   /healthz                "ok"
//
// There is no authentication, so it listens on what it is told and nothing
// else; the default is loopback. Texts come from jobs, and are escaped.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"

namespace rollcall {

class Daemon;

class HttpServer {
 public:
  // `daemon` outlives this object.
  explicit HttpServer(const Daemon* daemon);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // "HOST:PORT", port 0 for any free one.
  absl::Status Start(const std::string& address);
  void Stop();
  const std::string& address() const { return address_; }

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
  std::string address_;
};

}  // namespace rollcall
