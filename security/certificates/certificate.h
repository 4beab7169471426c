// SPDX-License-Identifier: Apache-2.0
// What certificates contain, and whether a certificate and its key can be used. All in PEM. Pure:
// the time is an argument. Thread-safe.
//
// An error names what is wrong and what to do. It does not name the file: the caller knows it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace rollcall {

struct CertificateFacts {
  int64_t not_before_s = 0;  // Unix time
  int64_t not_after_s = 0;
  // Alternative names. A name with control characters is left out: it is meant to deceive.
  std::vector<std::string> uris;
  std::vector<std::string> dns_names;
  std::vector<std::string> ip_addresses;  // "10.0.0.1", "fd00::1"
  std::string subject;                    // RFC 2253: "CN=node-17,O=cluster"
  std::string serial;                     // hexadecimal digits, upper case
  std::string fingerprint;                // SHA-256, 64 lower-case hexadecimal digits
  bool is_authority = false;
};

// Returns the facts of the first certificate, the owner's; its chain follows in the text.
absl::StatusOr<CertificateFacts> ParseCertificate(std::string_view pem);
// Returns the facts of all certificates. Fails if the text has none, or one does not parse.
absl::StatusOr<std::vector<CertificateFacts>> ParseCertificates(std::string_view pem);

enum class CertificateUse {
  kServer,  // rollcalld
  kClient,  // rollcall-agent, rollcall
};

// Whether TLS can use this certificate (with its chain) and this key: both parse, the key belongs
// to the certificate, it is for this use, and it is valid at `now_s`. With `ca_pem` also whether
// the chain ends at one of these authorities.
absl::Status CheckPair(std::string_view certificate_pem, std::string_view key_pem,
                       std::string_view ca_pem, CertificateUse use, int64_t now_s);

// Whether the chain of a client's certificate ends at one of these authorities at `now_s`. An
// authority that another one has signed may be that end.
absl::Status CheckClientChain(std::string_view chain_pem, std::string_view ca_pem, int64_t now_s);

// Whether at least one certificate of an authority is valid at `now_s`, and all parse.
absl::Status CheckAuthorities(std::string_view ca_pem, int64_t now_s);

// "2026-11-23 00:00:00 UTC".
std::string DateOf(int64_t unix_s);

}  // namespace rollcall
