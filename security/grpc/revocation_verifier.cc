// SPDX-License-Identifier: Apache-2.0
#include "security/grpc/revocation_verifier.h"

#include <string>
#include <utility>

namespace rollcall {
namespace {

using grpc::experimental::ExternalCertificateVerifier;
using grpc::experimental::TlsCustomVerificationCheckRequest;

// A verifier takes the place of gRPC's check of the name, and so makes that check too.
class RevocationVerifier : public ExternalCertificateVerifier {
 public:
  explicit RevocationVerifier(std::shared_ptr<const TlsFiles> files) : files_(std::move(files)) {}

  bool Verify(TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)> callback, grpc::Status* sync_status) override {
    const grpc::string_ref own = request->peer_cert(), above = request->peer_cert_full_chain();
    std::string chain(own.data(), own.size());
    chain.append(above.data(), above.size());
    if (files_->Current()->revocations.IsRevoked(chain)) {
      *sync_status = grpc::Status(grpc::StatusCode::UNAUTHENTICATED,
                                  "the daemon's certificate has been revoked");
      return true;
    }
    return name_.Verify(request, std::move(callback), sync_status);
  }
  void Cancel(TlsCustomVerificationCheckRequest* request) override { name_.Cancel(request); }

 private:
  const std::shared_ptr<const TlsFiles> files_;
  grpc::experimental::HostNameCertificateVerifier name_;
};

}  // namespace

std::shared_ptr<grpc::experimental::CertificateVerifier> MakeRevocationVerifier(
    std::shared_ptr<const TlsFiles> files) {
  return ExternalCertificateVerifier::Create<RevocationVerifier>(std::move(files));
}

}  // namespace rollcall
