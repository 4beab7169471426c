// SPDX-License-Identifier: Apache-2.0
// Makes an authority, certificates and revocation lists: P-256, SHA-256, serials of 128 random
// bits. Nothing but text goes in and out. Pure except for random numbers. Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace rollcall {

struct KeyAndCertificate {
  std::string certificate_pem;
  std::string key_pem;
};

struct Validity {
  int64_t from_s = 0;  // Unix time
  int64_t until_s = 0;
};

struct CertificateRequest {
  std::string common_name;  // at most 64 characters
  std::vector<std::string> uris;
  std::vector<std::string> dns_names;
  std::vector<std::string> ip_addresses;
  bool is_server = false;  // for rollcalld; every certificate is for clients, too
};

struct RevokedSerial {
  std::string serial;  // hexadecimal digits
  int64_t revoked_s = 0;
};

// `uri`: "spiffe://DOMAIN", or empty.
absl::StatusOr<KeyAndCertificate> MakeAuthority(const std::string& common_name,
                                                const Validity& validity,
                                                const std::string& uri = "");

absl::StatusOr<KeyAndCertificate> IssueCertificate(const KeyAndCertificate& authority,
                                                   const CertificateRequest& request,
                                                   const Validity& validity);

// `number` must grow from list to list.
absl::StatusOr<std::string> MakeRevocationList(const KeyAndCertificate& authority,
                                               const std::vector<RevokedSerial>& revoked,
                                               int64_t number, const Validity& validity);

struct RevocationFacts {
  std::vector<RevokedSerial> revoked;
  int64_t number = 0;
};
// Returns the facts of a list that MakeRevocationList() made. Does not check its signature.
absl::StatusOr<RevocationFacts> ParseRevocationList(std::string_view pem);

}  // namespace rollcall
