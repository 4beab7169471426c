// SPDX-License-Identifier: Apache-2.0
// All that decides who may do what on a daemon: certificates, tokens, keys, grants. Reads the
// files, and reads them again when they change.
//
// Thread-safe, except Poll(), which one thread calls.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/repeated_message.h"
#include "security/authenticator.h"
#include "security/certificates/tls_context.h"
#include "security/certificates/tls_files.h"
#include "security/certificates/trusted_chains.h"

namespace rollcall {

class AccessPolicy;
class JwtVerifier;
class KeySource;
class TokenFile;

struct SecurityOptions {
  TlsPaths tls;            // `authorities` are those of clients
  std::string token_file;  // may be empty
  std::string jwks;        // file or URL of the keys of Kubernetes' tokens, or empty
  std::string jwks_audience = "rollcall", jwks_issuer;
  std::string jwks_ca, jwks_token_file;    // for the URL
  std::vector<std::string> grants;         // --grant
  std::vector<std::string> trust_domains;  // as in NameRules
  bool is_insecure = false;
};

class DaemonSecurity {
 public:
  // Reads all files. An error names the wrong flag, why, and what to do.
  static absl::StatusOr<std::unique_ptr<DaemonSecurity>> Open(const SecurityOptions& options);
  // Only this process's user on this host.
  static std::unique_ptr<DaemonSecurity> ForOwner();
  ~DaemonSecurity();

  const Authenticator& authenticator() const;
  // nullptr without TLS.
  const TlsFiles* tls() const { return tls_.get(); }
  std::shared_ptr<const TlsFiles> shared_tls() const { return tls_; }
  // Returns the certificate for the page; empty without TLS.
  TlsSource page_tls();
  // Whether callers of other hosts can be known.
  bool KnowsRemoteCallers() const;
  bool is_insecure() const { return options_.is_insecure; }

  // Looks for changed files, and logs. About once a second.
  void Poll(int64_t now_s);

 private:
  explicit DaemonSecurity(SecurityOptions options);
  absl::Status OpenTls(int64_t now_s);
  absl::Status OpenTokens();
  absl::Status MakePolicy();
  bool IsRevoked(const std::string& certificate_pem) const;
  bool IsTrusted(const std::string& chain_pem, int64_t now_s);
  std::shared_ptr<const TlsContext> PageContext();

  const SecurityOptions options_;
  std::shared_ptr<TlsFiles> tls_;
  TrustedChains chains_;
  std::unique_ptr<TokenFile> tokens_;
  std::unique_ptr<KeySource> keys_;
  std::unique_ptr<JwtVerifier> verifier_;
  std::unique_ptr<AccessPolicy> policy_;
  RepeatedMessage token_problem_, key_problem_;  // of the thread that polls

  Mutex page_mutex_;
  std::shared_ptr<const TlsContents> page_contents_ ABSL_GUARDED_BY(page_mutex_);
  // Made from page_contents_.
  std::shared_ptr<const TlsContext> page_context_ ABSL_GUARDED_BY(page_mutex_);
};

// Returns a random token for the address of a page. "" if the system has no random numbers.
std::string MakePageToken();

}  // namespace rollcall
