// SPDX-License-Identifier: Apache-2.0
// Finds out who a caller is. gRPC and the page use the same object.
//
// Thread-safe. Does not wait for a disk or the network.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "security/identity.h"

namespace rollcall {

// What a caller presented. Every field may come from a stranger.
struct Presented {
  std::string certificate_pem;  // of the client; TLS has verified its chain, or empty
  // The other certificates that the client sent with it.
  std::string chain_pem;
  // Whether --tls-client-ca was what TLS verified the chain by. The page may have authorities of
  // its own.
  bool is_by_client_ca = false;
  std::string bearer;  // the token after "Bearer ", or empty
  // As gRPC writes it: "ipv4:127.0.0.1:41922", "ipv6:[::1]:41922", "unix:…".
  std::string peer;
  bool is_in_process = false;  // the caller is inside this process, and so its owner
  // The address of this host at which the connection arrived, in the same form; empty if unknown.
  // Without it, no caller on loopback is known.
  std::string local;
  bool is_encrypted = false;  // the connection uses TLS
};

class Authenticator {
 public:
  virtual ~Authenticator() = default;
  // kUnauthenticated: unknown, expired or revoked; the message names what to type next. It does not
  // reveal whether a token exists.
  virtual absl::StatusOr<Identity> Identify(const Presented& presented) const = 0;
  // Whether the same credential would be accepted now. For connections that stay open.
  virtual bool IsStillValid(const Identity& identity) const = 0;
};

}  // namespace rollcall
