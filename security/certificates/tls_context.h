// SPDX-License-Identifier: Apache-2.0
// The server's side of TLS for the page: one certificate with its key, and what clients must show.
//
// Immutable and thread-safe. A connection keeps the context that it began with, so the owner may
// exchange the context at any time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

using SSL_CTX = struct ssl_ctx_st;
using SSL = struct ssl_st;
using X509 = struct x509_st;

namespace rollcall {

struct TlsSettings {
  std::string certificate_pem;  // the server's own, and then its chain
  std::string key_pem;
  std::string client_ca_pem;  // who signs certificates of clients; empty to ask for none
  bool requires_client_certificate = false;
  // A client's certificate must have one of these SANs (of any type); empty means any certificate.
  std::vector<std::string> client_sans;
  bool needs_tls13 = false;  // else TLS 1.2 or later
};

class TlsContext {
 public:
  // Returns kInvalidArgument if a text does not parse, or if key and certificate do not fit.
  static absl::StatusOr<std::shared_ptr<const TlsContext>> Make(const TlsSettings& settings);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  // A server's connection without a socket. The caller frees it with SSL_free(). nullptr if there
  // is no memory.
  SSL* NewConnection() const;
  // Whether this certificate, whose chain is verified, may connect. nullptr if the client has none.
  bool Admits(X509* client) const;

  // DNS names of the certificate, also wildcards such as "*.example".
  const std::vector<std::string>& names() const { return names_; }
  int64_t expires_s() const { return expires_s_; }  // Unix time

 private:
  TlsContext() = default;

  SSL_CTX* context_ = nullptr;
  std::vector<std::string> names_;
  std::vector<std::string> client_sans_;
  int64_t expires_s_ = 0;
};

// The context for the next connection. Thread-safe.
using TlsSource = std::function<std::shared_ptr<const TlsContext>()>;

}  // namespace rollcall
