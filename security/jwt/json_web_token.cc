// SPDX-License-Identifier: Apache-2.0
#include "security/jwt/json_web_token.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/digest/digest.h"
#include "base/json/strict_json.h"
#include "base/names.h"

namespace rollcall {
namespace {

using nlohmann::json;

constexpr size_t kLongestJwt = 16'384;
constexpr int64_t kLeewayS = 60;   // between the clocks of issuer and daemon
constexpr double kLatestS = 1e12;  // a Unix time that no arithmetic overflows
constexpr char kKubernetes[] = "kubernetes.io";

absl::Status Refuse(absl::string_view why) {
  return absl::UnauthenticatedError(absl::StrCat("the token of Kubernetes is refused: ", why));
}

absl::StatusOr<json> ReadPart(absl::string_view part) {
  const std::optional<std::string> text = FromBase64Url(part);
  if (!text.has_value()) return Refuse("a part of it is not base64url");
  absl::StatusOr<json> object = ParseStrictObject(*text);
  return object.ok() ? object : Refuse(object.status().message());
}

std::optional<int64_t> TimeMember(const json& claims, const char* name) {
  const auto found = claims.find(name);
  if (found == claims.end() || !found->is_number()) return std::nullopt;
  const double seconds = found->get<double>();
  if (!std::isfinite(seconds) || seconds < 0 || seconds > kLatestS) return std::nullopt;
  return static_cast<int64_t>(seconds);
}

bool HasAudience(const json& claims, const std::string& audience) {
  const auto found = claims.find("aud");
  if (found == claims.end() || audience.empty()) return false;
  if (found->is_string()) return *found == audience;
  return found->is_array() && std::find(found->begin(), found->end(), audience) != found->end();
}

// "" if the member is missing.
std::string NestedText(const json& object, const char* outer, const char* inner) {
  const auto found = object.find(outer);
  return found != object.end() && found->is_object() ? TextMember(*found, inner) : "";
}

absl::Status CheckTimes(const json& claims, int64_t now_s) {
  const std::optional<int64_t> expires = TimeMember(claims, "exp");
  if (!expires.has_value()) return Refuse("it has no time of expiry");
  if (now_s >= *expires + kLeewayS) return Refuse("it has expired");
  if (!claims.contains("nbf")) return absl::OkStatus();
  const std::optional<int64_t> not_before = TimeMember(claims, "nbf");
  if (!not_before.has_value()) return Refuse("its claim nbf is not a time");
  return now_s + kLeewayS >= *not_before ? absl::OkStatus() : Refuse("it is not valid yet");
}

absl::Status CheckClaims(const json& claims, const JwtRules& rules, int64_t now_s) {
  if (!rules.issuer.empty() && TextMember(claims, "iss") != rules.issuer) {
    return Refuse("its issuer is not the one of --jwks-issuer");
  }
  if (!HasAudience(claims, rules.audience)) {
    return Refuse(
        "its audience is not the one of --jwks-audience: set 'audience' of the pod's "
        "projected serviceAccountToken");
  }
  if (TextMember(claims, "sub").empty()) return Refuse("it has no subject");
  return CheckTimes(claims, now_s);
}

absl::Status CheckSignature(const json& header, const KeySet& keys, absl::string_view message,
                            absl::string_view signature_text) {
  // An extension that must be understood, or an encoding that is not ours.
  if (header.contains("crit") || header.contains("b64")) return Refuse("it has extensions");
  const std::string id = TextMember(header, "kid");
  if (id.empty()) return Refuse("its header has no 'kid'");
  const std::string algorithm = TextMember(header, "alg");
  if (algorithm != SignatureName(SignatureKind::kRs256) &&
      algorithm != SignatureName(SignatureKind::kEs256)) {
    return Refuse("its algorithm is neither RS256 nor ES256");
  }
  const SignatureKind* kind = keys.Find(id);
  if (kind == nullptr) {
    return absl::NotFoundError("no key of --jwks has signed the token of Kubernetes");
  }
  if (algorithm != SignatureName(*kind)) return Refuse("its algorithm does not match its key");
  const std::optional<std::string> signature = FromBase64Url(signature_text);
  if (!signature.has_value() || !keys.Verifies(id, message, *signature)) {
    return Refuse("its signature is wrong");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<JwtClaims> VerifyJwt(absl::string_view jwt, const KeySet& keys,
                                    const JwtRules& rules, int64_t now_s) {
  if (jwt.size() > kLongestJwt) return Refuse("it is longer than 16 KiB");
  const std::vector<absl::string_view> parts = absl::StrSplit(jwt, '.');
  if (parts.size() != 3) return Refuse("it does not have three parts");
  const absl::StatusOr<json> header = ReadPart(parts[0]);
  if (!header.ok()) return header.status();
  const absl::string_view message = jwt.substr(0, parts[0].size() + 1 + parts[1].size());
  const absl::Status signature = CheckSignature(*header, keys, message, parts[2]);
  if (!signature.ok()) return signature;
  const absl::StatusOr<json> claims = ReadPart(parts[1]);
  if (!claims.ok()) return claims.status();
  const absl::Status status = CheckClaims(*claims, rules, now_s);
  if (!status.ok()) return status;
  JwtClaims result;
  result.subject = TextMember(*claims, "sub");
  result.expires_s = *TimeMember(*claims, "exp");
  result.sha256 = Sha256Hex(message);
  const auto kubernetes = claims->find(kKubernetes);
  if (kubernetes != claims->end() && kubernetes->is_object()) {
    result.node = NestedText(*kubernetes, "node", "name");
  }
  return result;
}

absl::StatusOr<Identity> IdentifyJwt(const JwtClaims& claims, const std::vector<Grant>& grants) {
  const Grant* grant = FindGrant(grants, {{SubjectKind::kJwtSubject, claims.subject}});
  if (grant == nullptr) {
    return Refuse(absl::StrCat("no grant fits its subject: start rollcalld with --grant=ROLE=sub:",
                               claims.subject));
  }
  Identity identity;
  identity.name = absl::StrCat("token of ", claims.subject);
  identity.roles = {grant->role};
  identity.tenants = grant->tenants;
  identity.hosts = grant->hosts;
  const bool is_node = IsPlainName(claims.node) && IsHostPattern(claims.node);  // no wildcard
  if (grant->role == Role::kAgent && identity.hosts.empty() && is_node) {
    identity.hosts = {claims.node};
  }
  identity.expires_s = claims.expires_s + kLeewayS;
  identity.credential = absl::StrCat("jwt ", claims.sha256);
  return identity;
}

}  // namespace rollcall
