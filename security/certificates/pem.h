// SPDX-License-Identifier: Apache-2.0
// PEM to OpenSSL's objects. For the .cc files of this folder only. Errors name what is wrong with
// the text and what to do; nothing asks for a passphrase.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "security/certificates/openssl_types.h"

namespace rollcall {

// Returns at least one.
absl::StatusOr<std::vector<CertificatePointer>> ReadCertificates(std::string_view pem);
absl::StatusOr<KeyPointer> ReadKey(std::string_view pem);
// Returns at least one.
absl::StatusOr<std::vector<CrlPointer>> ReadCrls(std::string_view pem);

std::string WritePem(X509* certificate);
std::string WritePem(EVP_PKEY* key);  // PKCS #8, not encrypted
std::string WritePem(X509_CRL* crl);

}  // namespace rollcall
