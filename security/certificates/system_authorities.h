// SPDX-License-Identifier: Apache-2.0
// The authorities that this system trusts, for a daemon whose certificate one of them has signed.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace rollcall {

// The value of --tls-ca for them instead of a file.
inline constexpr char kSystemAuthorities[] = "system";

// The file with all of them: $SSL_CERT_FILE as OpenSSL has it, else the first there is of those
// that distributions write. kNotFound: this host has none; the error names what to install.
absl::StatusOr<std::string> FindSystemAuthorities();

}  // namespace rollcall
