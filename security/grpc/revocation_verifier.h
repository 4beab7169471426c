// SPDX-License-Identifier: Apache-2.0
// Lets a client refuse a daemon whose certificate has been revoked. gRPC's own lists are a folder
// that it reads itself, and one that has expired ends every handshake; this one uses the list of
// TlsFiles.
#pragma once

#include <grpcpp/security/tls_certificate_verifier.h>

#include <memory>

#include "security/certificates/tls_files.h"

namespace rollcall {

// Called after each handshake: refuses a certificate that the list revokes, and one that is not for
// the daemon's name.
std::shared_ptr<grpc::experimental::CertificateVerifier> MakeRevocationVerifier(
    std::shared_ptr<const TlsFiles> files);

}  // namespace rollcall
