// SPDX-License-Identifier: Apache-2.0
// The daemon's authenticator: decides from all that a caller presents. One thing decides, the first
// of these that is there:
//   a bearer token, if the connection is encrypted or does not leave the host;
//   the caller is inside this process, or its user is the daemon's or root, on loopback or on a
//     unix socket;
//   a client certificate;
//   --insecure.
// What decides is never helped out by what follows: a wrong token stays wrong on loopback. A
// revoked certificate, and one of an authority that is no longer believed, is refused whatever else
// the caller presents.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/peer_address.h"
#include "security/authenticator.h"
#include "security/certificate_identity.h"
#include "security/identity.h"
#include "security/token_file.h"

namespace rollcall {

// The functions are called by any thread and must not block.
struct AccessOptions {
  bool is_insecure = false;           // a caller without credentials may do everything
  uid_t owner = 0;                    // the daemon's user
  NameRules names;                    // of certificates
  const TokenFile* tokens = nullptr;  // outlives the policy, or nullptr
  // Verifies a JWT. Empty if no token is accepted.
  std::function<absl::StatusOr<Identity>(absl::string_view jwt, int64_t now_s)> verify_jwt;
  // Empty if nothing is revoked.
  std::function<bool(const std::string& certificate_pem)> is_revoked;
  // Whether this certificate, with its chain, leads to an authority of --tls-client-ca. TLS has
  // seen to that when the connection began; the authorities may have changed since. Empty if it
  // does.
  std::function<bool(const std::string& chain_pem, int64_t now_s)> is_trusted;
  // The user at the other end of the connection `there` - `here`.
  std::function<std::optional<uid_t>(const PeerAddress& there, const PeerAddress& here)>
      loopback_user;
  std::function<int64_t()> now_s;  // Unix time
};

// Returns options with this process's user, LoopbackPeerUser() and the system's clock.
AccessOptions DefaultAccessOptions();

class AccessPolicy : public Authenticator {
 public:
  explicit AccessPolicy(AccessOptions options);

  absl::StatusOr<Identity> Identify(const Presented& presented) const override;
  bool IsStillValid(const Identity& identity) const override;

 private:
  absl::StatusOr<Identity> FromToken(const Presented& presented) const;
  absl::StatusOr<Identity> FromCertificate(const Presented& presented) const;
  std::optional<Identity> FromHost(const Presented& presented) const;
  absl::Status CheckCertificate(const Presented& presented) const;
  bool IsRevoked(const std::string& certificate_pem) const;
  bool IsTrusted(const std::string& chain_pem) const;

  const AccessOptions options_;
};

}  // namespace rollcall
