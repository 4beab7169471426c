// SPDX-License-Identifier: Apache-2.0
#include "security/certificates/system_authorities.h"

#include <stdlib.h>
#include <unistd.h>

#include <array>

#include "absl/status/status.h"

namespace rollcall {
namespace {

// OpenSSL's own default depends on where it was built, and that may have been another system.
constexpr std::array<const char*, 5> kFiles = {
    "/etc/ssl/certs/ca-certificates.crt",                 // Debian, Ubuntu, Arch, Alpine
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  // Fedora, RHEL
    "/etc/pki/tls/certs/ca-bundle.crt",                   // older ones of these
    "/etc/ssl/ca-bundle.pem",                             // SUSE
    "/etc/ssl/cert.pem",                                  // Alpine without ca-certificates
};

}  // namespace

absl::StatusOr<std::string> FindSystemAuthorities() {
  const char* given = getenv("SSL_CERT_FILE");
  if (given != nullptr && *given != '\0') return std::string(given);
  for (const char* file : kFiles) {
    if (access(file, R_OK) == 0) return std::string(file);
  }
  return absl::NotFoundError(
      "--tls-ca=system: this system has no list of authorities; install its package "
      "ca-certificates, or give a file: --tls-ca=FILE");
}

}  // namespace rollcall
