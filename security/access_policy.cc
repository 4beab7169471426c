// SPDX-License-Identifier: Apache-2.0
#include "security/access_policy.h"

#include <time.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/user_names.h"
#include "security/certificates/certificate.h"
#include "security/loopback_peer.h"
#include "security/token_list.h"

namespace rollcall {
namespace {

constexpr size_t kLongestBearer = 16'384;
// In a credential, before the PEM of the certificate; the second one also before that of its chain.
constexpr char kCertificate[] = "certificate ";
constexpr char kByClientCa[] = "certificate by --tls-client-ca ";
// The length of a chain. A holder of a certificate may send any others with it.
constexpr size_t kLongestChain = 32'768;

absl::Status UnknownCaller() {
  return absl::UnauthenticatedError(
      "rollcalld cannot identify you: present a token (--token-file=FILE) or a client "
      "certificate (--tls-cert=FILE --tls-key=FILE)");
}

bool StaysOnHost(const Presented& presented) {
  return presented.is_in_process || IsPeerOnThisHost(presented.peer);
}

// Rollcall's own tokens have no dots.
bool LooksLikeJwt(absl::string_view bearer) { return absl::StrContains(bearer, '.'); }

}  // namespace

AccessOptions DefaultAccessOptions() {
  AccessOptions options;
  options.owner = geteuid();
  options.loopback_user = LoopbackPeerUser;
  options.now_s = [] { return static_cast<int64_t>(time(nullptr)); };
  return options;
}

AccessPolicy::AccessPolicy(AccessOptions options) : options_(std::move(options)) {}

absl::StatusOr<Identity> AccessPolicy::Identify(const Presented& presented) const {
  const absl::Status certificate = CheckCertificate(presented);
  if (!certificate.ok()) return certificate;
  if (!presented.bearer.empty()) return FromToken(presented);
  if (std::optional<Identity> owner = FromHost(presented)) return *std::move(owner);
  if (!presented.certificate_pem.empty()) {
    absl::StatusOr<Identity> identity = FromCertificate(presented);
    if (identity.ok() || !options_.is_insecure) return identity;
  }
  if (options_.is_insecure) return OwnerIdentity("anybody (--insecure)");
  return UnknownCaller();
}

absl::Status AccessPolicy::CheckCertificate(const Presented& presented) const {
  if (presented.certificate_pem.empty()) return absl::OkStatus();
  if (presented.chain_pem.size() > kLongestChain) {
    return absl::UnauthenticatedError("the certificate's chain is longer than 32 KiB");
  }
  const std::string chain = absl::StrCat(presented.certificate_pem, presented.chain_pem);
  if (IsRevoked(chain)) {
    return absl::UnauthenticatedError(
        "the certificate has been revoked: ask the operator of rollcalld for a new one "
        "(`rollcall pki issue`)");
  }
  if (!presented.is_by_client_ca || IsTrusted(chain)) return absl::OkStatus();
  return absl::UnauthenticatedError(
      "rollcalld no longer trusts the authority that signed the certificate (--tls-client-ca): ask "
      "its operator for a new one");
}

absl::StatusOr<Identity> AccessPolicy::FromToken(const Presented& presented) const {
  if (!presented.is_encrypted && !StaysOnHost(presented)) {
    return absl::UnauthenticatedError(
        "tokens are accepted over TLS only: use --tls-ca=FILE here, and start rollcalld with "
        "--tls-cert=FILE --tls-key=FILE. Make a new token: this one crossed the network in clear");
  }
  const int64_t now_s = options_.now_s();
  const bool is_jwt = LooksLikeJwt(presented.bearer);
  if (presented.bearer.size() > kLongestBearer) {
    return absl::UnauthenticatedError("the token is longer than 16 KiB");
  }
  if (is_jwt && options_.verify_jwt) return options_.verify_jwt(presented.bearer, now_s);
  if (!is_jwt && options_.tokens != nullptr) {
    return options_.tokens->Identify(presented.bearer, now_s);
  }
  return absl::UnauthenticatedError(
      is_jwt ? "rollcalld takes no tokens of Kubernetes: start it with --jwks=FILE or --jwks=URL"
             : "rollcalld takes no tokens: start it with --token-file=FILE");
}

std::optional<Identity> AccessPolicy::FromHost(const Presented& presented) const {
  if (presented.is_in_process) return OwnerIdentity("this process");
  if (IsUnixPeer(presented.peer)) return OwnerIdentity("unix socket");
  const std::optional<PeerAddress> there = ParsePeer(presented.peer);
  if (!there.has_value() || !there->IsLoopback() || !options_.loopback_user) return std::nullopt;
  const std::optional<PeerAddress> here = ParsePeer(presented.local);
  if (!here.has_value()) return std::nullopt;
  const std::optional<uid_t> user = options_.loopback_user(*there, *here);
  if (!user.has_value() || (*user != options_.owner && *user != 0)) return std::nullopt;
  return OwnerIdentity(UserInWords(*user));
}

absl::StatusOr<Identity> AccessPolicy::FromCertificate(const Presented& presented) const {
  const std::string& pem = presented.certificate_pem;
  absl::StatusOr<CertificateFacts> facts = ParseCertificate(pem);
  if (!facts.ok()) return absl::UnauthenticatedError(facts.status().message());
  if (options_.now_s() > facts->not_after_s) {
    return absl::UnauthenticatedError(
        "the certificate has expired: renew it (`rollcall pki renew`)");
  }
  absl::StatusOr<Identity> identity = IdentifyCertificate(
      {std::move(facts->uris), std::move(facts->dns_names), facts->not_after_s}, options_.names);
  if (identity.ok()) {
    identity->credential = presented.is_by_client_ca
                               ? absl::StrCat(kByClientCa, pem, presented.chain_pem)
                               : absl::StrCat(kCertificate, pem);
  }
  return identity;
}

bool AccessPolicy::IsRevoked(const std::string& certificate_pem) const {
  return options_.is_revoked && options_.is_revoked(certificate_pem);
}

bool AccessPolicy::IsTrusted(const std::string& chain_pem) const {
  return !options_.is_trusted || options_.is_trusted(chain_pem, options_.now_s());
}

bool AccessPolicy::IsStillValid(const Identity& identity) const {
  const int64_t now_s = options_.now_s();
  if (identity.expires_s != 0 && now_s >= identity.expires_s) return false;
  if (absl::StartsWith(identity.credential, "token ")) {
    return options_.tokens != nullptr && options_.tokens->IsStillValid(identity, now_s);
  }
  absl::string_view pem = identity.credential;
  if (absl::ConsumePrefix(&pem, kByClientCa)) {
    return !IsRevoked(std::string(pem)) && IsTrusted(std::string(pem));
  }
  return !absl::ConsumePrefix(&pem, kCertificate) || !IsRevoked(std::string(pem));
}

}  // namespace rollcall
