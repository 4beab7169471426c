// SPDX-License-Identifier: Apache-2.0
#include "tests/fleet/credentials.h"

#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

namespace rollcall::fleet {
namespace {

bool Read(const std::string& path, std::string* text) {
  if (path.empty()) return true;
  std::ostringstream content;
  if (content << std::ifstream(path).rdbuf()) {
    *text = content.str();
    return true;
  }
  std::cerr << "fleet_load: cannot read " << path << "\n";
  return false;
}

}  // namespace

std::shared_ptr<grpc::ChannelCredentials> MakeCredentials(const LoadOptions& options) {
  if (options.tls_ca.empty()) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions tls;
  const bool ok = Read(options.tls_ca, &tls.pem_root_certs) &&
                  Read(options.tls_cert, &tls.pem_cert_chain) &&
                  Read(options.tls_key, &tls.pem_private_key);
  return ok ? grpc::SslCredentials(tls) : nullptr;
}

}  // namespace rollcall::fleet
