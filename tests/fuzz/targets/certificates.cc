// SPDX-License-Identifier: Apache-2.0
// Certificates, keys and revocation lists. The first byte of an input says which of the four parts
// behind it (certificate, key, authorities, list) are DER, which the target makes PEM of.
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "fuzz_target.h"
#include "security/certificate_identity.h"
#include "security/certificates/certificate.h"
#include "security/certificates/certificate_authority.h"
#include "security/certificates/revocation.h"
#include "security/certificates/tls_context.h"

namespace rollcall {
namespace fuzz {
namespace {

constexpr int64_t kNow = 1'800'000'000;

std::string ToPem(const char* kind, std::string_view der) {
  const std::string base64 = absl::Base64Escape(absl::string_view(der.data(), der.size()));
  std::string lines;
  for (size_t at = 0; at < base64.size(); at += 64) {
    absl::StrAppend(&lines, base64.substr(at, 64), "\n");
  }
  return absl::StrCat("-----BEGIN ", kind, "-----\n", lines, "-----END ", kind, "-----\n");
}

void CheckFacts(const CertificateFacts& facts) {
  Promise(facts.fingerprint.size() == 64, "a certificate has a fingerprint");
  for (const auto* names : {&facts.uris, &facts.dns_names, &facts.ip_addresses}) {
    for (const std::string& name : *names) {
      for (const char c : name) Promise(c > ' ' && c <= '~', "a name is printable");
    }
  }
  CertificateNames names;
  names.uris = facts.uris;
  names.dns_names = facts.dns_names;
  names.not_after_s = facts.not_after_s;
  (void)IdentifyCertificate(names, {});
}

// As for the page. OpenSSL takes longer for it than for all the rest, so only with a certificate.
void MakeContext(const std::string& certificate, const std::string& key,
                 const std::string& authorities) {
  TlsSettings settings;
  settings.certificate_pem = certificate;
  settings.key_pem = key;
  settings.client_ca_pem = authorities;
  const auto context = TlsContext::Make(settings);
  if (context.ok()) (void)(*context)->names();
}

void Run(Input input) {
  const auto is_der = input.Take<uint8_t>();
  const auto part = [&input, is_der](int bit, const char* kind) {
    const std::string_view bytes = input.TakePart();
    return (is_der >> bit & 1) != 0 ? ToPem(kind, bytes) : std::string(bytes);
  };
  const std::string certificate = part(0, "CERTIFICATE");
  const std::string key = part(1, "PRIVATE KEY");
  const std::string authorities = part(2, "CERTIFICATE");
  const std::string list = part(3, "X509 CRL");
  const auto all = ParseCertificates(certificate);
  if (all.ok()) {
    for (const CertificateFacts& facts : *all) CheckFacts(facts);
    MakeContext(certificate, key, authorities);
  }
  (void)CheckPair(certificate, key, authorities, CertificateUse::kClient, kNow);
  (void)CheckAuthorities(authorities, kNow);
  (void)ParseRevocationList(list);
  const auto revoked = RevocationList::Parse(list, authorities);
  if (revoked.ok()) (void)revoked->IsRevoked(certificate);
}

const Registered kTarget({"certificates", 8192, &Run});

}  // namespace
}  // namespace fuzz
}  // namespace rollcall
