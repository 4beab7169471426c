// SPDX-License-Identifier: Apache-2.0
// Turns the names in a client certificate into an identity. TLS has verified the certificate's
// chain before. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "security/grants.h"
#include "security/identity.h"

namespace rollcall {

// What the daemon's administrator sets about names in certificates.
struct NameRules {
  // Only in these trust domains may a name of Rollcall's form give a role; if empty, in every one
  // that an authority of the clients signs.
  std::vector<std::string> trust_domains;
  std::vector<Grant> grants;
};

// What decides about the identity of a certificate's holder.
struct CertificateNames {
  std::vector<std::string> uris;       // URI SANs
  std::vector<std::string> dns_names;  // DNS SANs
  int64_t not_after_s = 0;             // Unix time
};

// A URI SAN "spiffe://DOMAIN/rollcall/ROLE[/host/HOST]...[/tenant/TENANT]...[/all-tenants]" decides
// alone, if DOMAIN counts. Without such a name, the first grant that fits a URI SAN or DNS SAN
// decides.
// An agent also speaks for the DNS SANs of its certificate, if no grant names hosts for it.
// kUnauthenticated: no name gives a role, or a name of Rollcall's is malformed, or there are two.
absl::StatusOr<Identity> IdentifyCertificate(const CertificateNames& certificate,
                                             const NameRules& rules);

}  // namespace rollcall
