// SPDX-License-Identifier: Apache-2.0
// From a JWT to an identity, with the keys of --jwks as they are now: what
// AccessOptions::verify_jwt needs. Thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "security/grants.h"
#include "security/identity.h"
#include "security/jwt/json_web_token.h"
#include "security/jwt/key_source.h"

namespace rollcall {

class JwtVerifier {
 public:
  // `source` outlives the verifier.
  JwtVerifier(KeySource* source, JwtRules rules, std::vector<Grant> grants);

  // kUnauthenticated; or kUnavailable: there are no keys yet. A token of an unknown key has new
  // keys fetched: the caller tries again.
  absl::StatusOr<Identity> Verify(absl::string_view jwt, int64_t now_s) const;

 private:
  KeySource* const source_;
  const JwtRules rules_;
  const std::vector<Grant> grants_;
};

}  // namespace rollcall
