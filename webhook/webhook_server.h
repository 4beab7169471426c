// SPDX-License-Identifier: Apache-2.0
// The HTTPS server of `rollcall webhook`:
//
//   POST /mutate   an AdmissionReview (review.h)
//   GET /healthz   "ok"
//
// Any client that reaches it may ask: an answer contains nothing that the request does not.
// http_front.h limits slow clients and their number; a body has at most 3 MiB, as at the API
// server.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "security/certificates/tls_files.h"
#include "webhook/inject.h"

namespace rollcall {

class HttpFront;

struct WebhookOptions {
  std::string listen;  // HOST:PORT
  TlsPaths tls;        // certificate and key
  InjectionSettings injection;
};

class WebhookServer {
 public:
  explicit WebhookServer(WebhookOptions options);
  ~WebhookServer();
  WebhookServer(const WebhookServer&) = delete;
  WebhookServer& operator=(const WebhookServer&) = delete;

  absl::Status Start();
  // Reads the certificate again if it has changed, and logs what is wrong. One thread, once a
  // second.
  void PollCertificate();
  int port() const { return port_; }  // after Start()

 private:
  class Tls;

  const WebhookOptions options_;
  const std::unique_ptr<Tls> tls_;
  std::unique_ptr<HttpFront> front_;  // ends before tls_
  int port_ = 0;
};

}  // namespace rollcall
