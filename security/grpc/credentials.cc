// SPDX-License-Identifier: Apache-2.0
#include "security/grpc/credentials.h"

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "security/bearer_file.h"
#include "security/grpc/bearer_interceptor.h"
#include "security/server_address.h"

namespace rollcall {
namespace {

using grpc::experimental::FileWatcherCertificateProvider;

constexpr unsigned int kRefreshS = 1;
constexpr char kBearer[] = "Bearer ";

std::shared_ptr<FileWatcherCertificateProvider> Watch(const TlsFiles& files) {
  const std::string identity = files.identity_path();
  return std::make_shared<FileWatcherCertificateProvider>(identity, identity,
                                                          files.authorities_path(), kRefreshS);
}

void WatchAll(const TlsFiles& files, grpc::experimental::TlsCredentialsOptions* options) {
  if (!files.identity_path().empty()) options->watch_identity_key_cert_pairs();
  if (!files.authorities_path().empty()) options->watch_root_certs();
}

absl::string_view View(const grpc::string_ref& text) { return {text.data(), text.size()}; }

std::string FirstProperty(const grpc::AuthContext& context, const char* name) {
  const std::vector<grpc::string_ref> values = context.FindPropertyValues(name);
  return values.empty() ? "" : std::string(View(values.front()));
}

bool IsEncrypted(const grpc::AuthContext& context) {
  const std::string type = FirstProperty(context, GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME);
  return type == "tls" || type == "ssl";
}

// Two tokens in one call are none: which of them counts must not depend on who looks.
std::string BearerOf(const std::multimap<grpc::string_ref, grpc::string_ref>& metadata) {
  if (metadata.count("authorization") != 1) return "";
  absl::string_view value = View(metadata.find("authorization")->second);
  if (!absl::StartsWithIgnoreCase(value, kBearer)) return "";
  value.remove_prefix(sizeof(kBearer) - 1);
  return std::string(value);
}

// Every connection has a security type, also one without TLS. A call inside the process has none,
// and gRPC calls its peer "unknown".
bool IsInsideProcess(const grpc::AuthContext* context, const std::string& peer) {
  return peer == "unknown" &&
         (context == nullptr ||
          FirstProperty(*context, GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME).empty());
}

absl::Status CheckSecurity(const std::string& address, const ChannelSecurity& security) {
  if (security.tls != nullptr && security.tls->authorities_path().empty()) {
    return absl::InvalidArgumentError(
        "TLS needs to know whom to believe: --tls-ca=FILE, the certificate of the authority that "
        "signed the daemon's");
  }
  if (!security.token_file.empty() && security.tls == nullptr && !IsOnThisHost(address)) {
    return absl::InvalidArgumentError(absl::StrCat("a token goes to another host (", address,
                                                   ") by TLS only: add --tls-ca=FILE"));
  }
  return absl::OkStatus();
}

std::shared_ptr<grpc::ChannelCredentials> ChannelCredentialsOf(const ChannelSecurity& security) {
  if (security.tls == nullptr) return grpc::InsecureChannelCredentials();
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(Watch(*security.tls));
  WatchAll(*security.tls, &options);
  return grpc::experimental::TlsCredentials(options);
}

}  // namespace

std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const TlsFiles& files,
                                                               ClientCertificate client) {
  grpc::experimental::TlsServerCredentialsOptions options(Watch(files));
  WatchAll(files, &options);
  if (files.authorities_path().empty()) {
    options.set_cert_request_type(GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  } else {
    options.set_cert_request_type(client == ClientCertificate::kRequired
                                      ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                                      : GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY);
  }
  return grpc::experimental::TlsServerCredentials(options);
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(const std::string& address,
                                                           grpc::ChannelArguments arguments,
                                                           const ChannelSecurity& security) {
  if (absl::Status status = CheckSecurity(address, security); !status.ok()) return status;
  if (security.tls != nullptr && !security.server_name.empty()) {
    arguments.SetSslTargetNameOverride(security.server_name);
  }
  std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>> factories;
  if (!security.token_file.empty()) {
    auto file = std::make_shared<BearerFile>(security.token_file);
    if (const absl::StatusOr<std::string> token = file->Read(); !token.ok()) return token.status();
    factories.push_back(std::make_unique<BearerInterceptorFactory>(std::move(file)));
  }
  return grpc::experimental::CreateCustomChannelWithInterceptors(
      address, ChannelCredentialsOf(security), arguments, std::move(factories));
}

Presented PresentedBy(const grpc::ServerContextBase& context) {
  Presented presented;
  const std::shared_ptr<const grpc::AuthContext> facts = context.auth_context();
  if (facts != nullptr) {
    presented.is_encrypted = IsEncrypted(*facts);
    presented.certificate_pem = FirstProperty(*facts, GRPC_X509_PEM_CERT_PROPERTY_NAME);
  }
  presented.bearer = BearerOf(context.client_metadata());
  const std::string peer = context.peer();
  presented.is_in_process = IsInsideProcess(facts.get(), peer);
  presented.peer = absl::StrReplaceAll(peer, {{"%5B", "["}, {"%5D", "]"}});
  return presented;
}

}  // namespace rollcall
