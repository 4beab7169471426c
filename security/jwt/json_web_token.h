// SPDX-License-Identifier: Apache-2.0
// Verifies JWTs, such as the service-account tokens of Kubernetes (RFC 7515, 7519): RS256 and ES256
// only. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "security/grants.h"
#include "security/identity.h"
#include "security/jwt/key_set.h"

namespace rollcall {

struct JwtRules {
  std::string audience;  // must be among the token's; never empty
  std::string issuer;    // must be the token's; empty means any that the key set has signed for
};

struct JwtClaims {
  std::string subject;
  std::string node;       // "kubernetes.io": {"node": {"name": …}}
  int64_t expires_s = 0;  // Unix time
  std::string sha256;     // of the token without its signature, in hex
};

// kNotFound: no key has the token's id, perhaps not yet. kUnauthenticated: all other errors.
absl::StatusOr<JwtClaims> VerifyJwt(absl::string_view jwt, const KeySet& keys,
                                    const JwtRules& rules, int64_t now_s);

// The first grant that fits the subject decides. An agent speaks for the hosts of the grant;
// without any, for the node on which its pod runs. kUnauthenticated: no grant fits.
absl::StatusOr<Identity> IdentifyJwt(const JwtClaims& claims, const std::vector<Grant>& grants);

}  // namespace rollcall
