// SPDX-License-Identifier: Apache-2.0
#include "security/jwt/jwt_verifier.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

namespace rollcall {

JwtVerifier::JwtVerifier(KeySource* source, JwtRules rules, std::vector<Grant> grants)
    : source_(source), rules_(std::move(rules)), grants_(std::move(grants)) {}

absl::StatusOr<Identity> JwtVerifier::Verify(absl::string_view jwt, int64_t now_s) const {
  const std::shared_ptr<const KeySet> keys = source_->keys();
  if (keys == nullptr) {
    return absl::UnavailableError(
        "rollcalld has no keys of --jwks yet, so it cannot verify the token of Kubernetes; its "
        "log has the reason");
  }
  const absl::StatusOr<JwtClaims> claims = VerifyJwt(jwt, *keys, rules_, now_s);
  if (claims.ok()) return IdentifyJwt(*claims, grants_);
  if (claims.status().code() != absl::StatusCode::kNotFound) return claims.status();
  source_->WantNewKeys();
  return absl::UnauthenticatedError(
      absl::StrCat(claims.status().message(), "; rollcalld asks for new keys: try again"));
}

}  // namespace rollcall
