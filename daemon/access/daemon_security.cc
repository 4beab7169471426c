// SPDX-License-Identifier: Apache-2.0
#include "daemon/access/daemon_security.h"

#include <spdlog/spdlog.h>
#include <time.h>

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/names.h"
#include "base/secret_file.h"
#include "security/access_policy.h"
#include "security/jwt/jwt_verifier.h"
#include "security/jwt/key_fetch.h"
#include "security/jwt/key_source.h"
#include "security/token_file.h"
#include "security/token_list.h"

namespace rollcall {
namespace {

absl::Status InFlag(const char* flag, const absl::Status& status) {
  if (status.ok()) return status;
  return {status.code(), absl::StrCat(flag, ": ", std::string(status.message()))};
}

bool IsUrl(const std::string& text) {
  return absl::StartsWith(text, "https://") || absl::StartsWith(text, "http://");
}

absl::StatusOr<std::vector<Grant>> ParseGrants(const std::vector<std::string>& texts) {
  std::vector<Grant> grants;
  for (const std::string& text : texts) {
    auto grant = ParseGrant(text);
    if (!grant.ok()) return InFlag("--grant", grant.status());
    grants.push_back(*std::move(grant));
  }
  return grants;
}

// A domain with a capital letter, or a whole "spiffe://domain", would fit no certificate.
absl::Status CheckDomains(const std::vector<std::string>& domains) {
  for (const std::string& domain : domains) {
    if (IsPlainName(domain) && absl::AsciiStrToLower(domain) == domain) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--trust-domain=", domain,
                     ": the part DOMAIN of spiffe://DOMAIN/rollcall/..., in lower case"));
  }
  return absl::OkStatus();
}

absl::Status CheckPairs(const SecurityOptions& options) {
  const TlsPaths& tls = options.tls;
  if (tls.certificate.empty() != tls.key.empty()) {
    return absl::InvalidArgumentError("--tls-cert and --tls-key belong together: give both");
  }
  if (tls.certificate.empty() && !tls.authorities.empty()) {
    return absl::InvalidArgumentError(
        "--tls-client-ca needs the daemon's own certificate: --tls-cert=FILE --tls-key=FILE");
  }
  if (tls.authorities.empty() && !tls.revocations.empty()) {
    return absl::InvalidArgumentError(
        "--tls-crl needs --tls-client-ca=FILE, the authority that issued the list");
  }
  return absl::OkStatus();
}

}  // namespace

DaemonSecurity::DaemonSecurity(SecurityOptions options) : options_(std::move(options)) {}
DaemonSecurity::~DaemonSecurity() = default;

absl::StatusOr<std::unique_ptr<DaemonSecurity>> DaemonSecurity::Open(
    const SecurityOptions& options) {
  std::unique_ptr<DaemonSecurity> security(new DaemonSecurity(options));
  absl::Status status = CheckPairs(options);
  if (status.ok()) status = CheckDomains(options.trust_domains);
  if (status.ok()) status = security->OpenTls(time(nullptr));
  if (status.ok()) status = security->OpenTokens();
  if (status.ok()) status = security->MakePolicy();
  if (!status.ok()) return status;
  return security;
}

std::unique_ptr<DaemonSecurity> DaemonSecurity::ForOwner() {
  return *Open(SecurityOptions());  // without a file, nothing can fail
}

absl::Status DaemonSecurity::OpenTls(int64_t now_s) {
  if (options_.tls.certificate.empty()) return absl::OkStatus();
  tls_ = std::make_shared<TlsFiles>(options_.tls, CertificateUse::kServer);
  return tls_->Poll(now_s);
}

absl::Status DaemonSecurity::OpenTokens() {
  if (options_.token_file.empty()) return absl::OkStatus();
  tokens_ = std::make_unique<TokenFile>(options_.token_file);
  return InFlag("--token-file", tokens_->Poll());
}

absl::Status DaemonSecurity::MakePolicy() {
  const auto grants = ParseGrants(options_.grants);
  if (!grants.ok()) return grants.status();
  // Each fetch reads it again, and refuses it as this does.
  if (!options_.jwks_token_file.empty()) {
    const absl::Status token = ReadSecretFile(options_.jwks_token_file, "token").status();
    if (!token.ok()) return InFlag("--jwks-token-file", token);
  }
  if (!options_.jwks.empty()) {
    if (IsUrl(options_.jwks)) {
      const absl::Status url = CheckKeyUrl(options_.jwks);
      if (!url.ok()) return InFlag("--jwks", url);
      keys_ = KeySource::Fetch(
          ReadKeysFromUrl({options_.jwks, options_.jwks_ca, options_.jwks_token_file}));
    } else {
      keys_ = KeySource::Watch(ReadKeysFromFile(options_.jwks));
    }
    verifier_ = std::make_unique<JwtVerifier>(
        keys_.get(), JwtRules{options_.jwks_audience, options_.jwks_issuer}, *grants);
  }
  AccessOptions access = DefaultAccessOptions();
  access.is_insecure = options_.is_insecure;
  access.names = {options_.trust_domains, *grants};
  access.tokens = tokens_.get();
  if (verifier_ != nullptr) {
    access.verify_jwt = [this](absl::string_view jwt, int64_t now_s) {
      return verifier_->Verify(jwt, now_s);
    };
  }
  access.is_revoked = [this](const std::string& pem) { return IsRevoked(pem); };
  access.is_trusted = [this](const std::string& pem, int64_t now_s) {
    return IsTrusted(pem, now_s);
  };
  policy_ = std::make_unique<AccessPolicy>(std::move(access));
  return absl::OkStatus();
}

bool DaemonSecurity::IsRevoked(const std::string& certificate_pem) const {
  const std::shared_ptr<const TlsContents> contents = tls_ == nullptr ? nullptr : tls_->Current();
  return contents != nullptr && contents->revocations.IsRevoked(certificate_pem);
}

bool DaemonSecurity::IsTrusted(const std::string& chain_pem, int64_t now_s) {
  const std::shared_ptr<const TlsContents> contents = tls_ == nullptr ? nullptr : tls_->Current();
  return contents != nullptr && chains_.IsTrusted(chain_pem, contents->ca_pem, now_s);
}

const Authenticator& DaemonSecurity::authenticator() const { return *policy_; }

bool DaemonSecurity::KnowsRemoteCallers() const {
  return !options_.tls.authorities.empty() || tokens_ != nullptr || keys_ != nullptr;
}

TlsSource DaemonSecurity::page_tls() {
  if (tls_ == nullptr) return nullptr;
  return [this] { return PageContext(); };
}

// The last good context, if the contents make none.
std::shared_ptr<const TlsContext> DaemonSecurity::PageContext() {
  const std::shared_ptr<const TlsContents> contents = tls_->Current();
  const MutexLock lock(page_mutex_);
  if (contents == page_contents_) return page_context_;
  page_contents_ = contents;
  TlsSettings settings;
  settings.certificate_pem = contents->certificate_pem;
  settings.key_pem = contents->key_pem;
  settings.client_ca_pem = contents->ca_pem;
  auto context = TlsContext::Make(settings);
  if (context.ok()) {
    page_context_ = *std::move(context);
  } else {
    spdlog::error("page: {}", std::string(context.status().message()));
  }
  return page_context_;
}

void DaemonSecurity::Poll(int64_t now_s) {
  if (tls_ != nullptr) {
    static_cast<void>(tls_->Poll(now_s));  // its messages name what is wrong
    for (const std::string& line : tls_->TakeNews()) spdlog::info("{}", line);
    for (const std::string& message : tls_->TakeMessages()) spdlog::warn("{}", message);
  }
  if (tokens_ != nullptr) {
    const std::string problem(tokens_->Poll().message());
    if (token_problem_.IsDue(problem, now_s)) {
      spdlog::warn(
          "--token-file: {}; the tokens that were good before stay valid. To revoke all, "
          "write there: tokens: []",
          problem);
    }
  }
  if (keys_ != nullptr) {
    const std::string problem(keys_->status().message());
    if (key_problem_.IsDue(problem, now_s)) spdlog::warn("--jwks: {}", problem);
  }
}

std::string MakePageToken() { return NewToken().value_or(""); }

}  // namespace rollcall
