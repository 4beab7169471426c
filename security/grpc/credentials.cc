// SPDX-License-Identifier: Apache-2.0
#include "security/grpc/credentials.h"

#include <grpcpp/create_channel_posix.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/server_address.h"
#include "security/bearer_file.h"
#include "security/grpc/bearer_interceptor.h"
#include "security/grpc/revocation_verifier.h"
#include "security/local_connection.h"

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

void WatchAll(const TlsFiles& files, bool shows_certificate,
              grpc::experimental::TlsCredentialsOptions* options) {
  if (shows_certificate && !files.identity_path().empty()) {
    options->watch_identity_key_cert_pairs();
  }
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

// Ignores two tokens in one call: which of them counts must not depend on the reader.
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

using Interceptors =
    std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>>;

absl::Status CheckAddress(const std::string& address) {
  const ServerAddress server = SplitServerAddress(address);
  uint32_t port = 0;
  if (server.is_unix) return absl::OkStatus();
  if (absl::SimpleAtoi(server.port, &port) && port > 0 && port <= 65535) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the daemon's address \"", address, "\" has no port: --daemon=HOST:7655"));
}

absl::Status CheckSecurity(const std::string& address, const ChannelSecurity& security) {
  if (security.tls != nullptr && security.tls->authorities_path().empty()) {
    return absl::InvalidArgumentError(
        "TLS needs an authority to trust: --tls-ca=FILE, the certificate of the authority that "
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
  WatchAll(*security.tls, security.shows_certificate, &options);
  if (!security.tls->paths().revocations.empty()) {
    options.set_certificate_verifier(MakeRevocationVerifier(security.tls));
  }
  return grpc::experimental::TlsCredentials(options);
}

}  // namespace

std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const TlsFiles& files,
                                                               ClientCertificate client) {
  grpc::experimental::TlsServerCredentialsOptions options(Watch(files));
  WatchAll(files, true, &options);
  if (files.authorities_path().empty()) {
    options.set_cert_request_type(GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  } else {
    options.set_cert_request_type(client == ClientCertificate::kRequired
                                      ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                                      : GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY);
  }
  return grpc::experimental::TlsServerCredentials(options);
}

absl::Status CheckChannel(const std::string& address, const ChannelSecurity& security) {
  absl::Status status = CheckAddress(address);
  if (status.ok()) status = CheckSecurity(address, security);
  if (status.ok()) status = DaemonUser::Parse(security.daemon_user).status();
  if (status.ok() && !security.token_file.empty()) {
    status = BearerFile(security.token_file).Read().status();
  }
  return status;
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(const std::string& address,
                                                           grpc::ChannelArguments arguments,
                                                           const ChannelSecurity& security) {
  if (absl::Status status = CheckChannel(address, security); !status.ok()) return status;
  const bool is_here = IsOnThisHost(address);
  const bool may_use_proxy = security.tls != nullptr && !is_here;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, may_use_proxy ? 1 : 0);
  if (security.tls != nullptr && !security.server_name.empty()) {
    arguments.SetSslTargetNameOverride(security.server_name);
  }
  Interceptors factories;
  if (!security.token_file.empty()) {
    factories.push_back(std::make_unique<BearerInterceptorFactory>(
        std::make_shared<BearerFile>(security.token_file)));
  }
  if (security.tls == nullptr && is_here) {
    absl::StatusOr<UniqueFd> fd = ConnectOnThisHost(
        address, *DaemonUser::Parse(security.daemon_user),
        security.sends_secret || !security.token_file.empty(), security.local_patience_ms);
    if (!fd.ok()) return fd.status();
    return grpc::experimental::CreateCustomInsecureChannelWithInterceptorsFromFd(
        "localhost", fd->Release(), arguments, std::move(factories));
  }
  return grpc::experimental::CreateCustomChannelWithInterceptors(
      address, ChannelCredentialsOf(security), arguments, std::move(factories));
}

std::string CertificateOfDaemon(const grpc::ClientContext& context) {
  const std::shared_ptr<const grpc::AuthContext> facts = context.auth_context();
  return facts == nullptr ? "" : FirstProperty(*facts, GRPC_X509_PEM_CERT_PROPERTY_NAME);
}

Presented PresentedBy(const grpc::ServerContextBase& context) {
  Presented presented;
  const std::shared_ptr<const grpc::AuthContext> facts = context.auth_context();
  if (facts != nullptr) {
    presented.is_encrypted = IsEncrypted(*facts);
    presented.certificate_pem = FirstProperty(*facts, GRPC_X509_PEM_CERT_PROPERTY_NAME);
    presented.chain_pem = FirstProperty(*facts, GRPC_X509_PEM_CERT_CHAIN_PROPERTY_NAME);
    presented.is_by_client_ca = true;
  }
  presented.bearer = BearerOf(context.client_metadata());
  const std::string peer = context.peer();
  presented.is_in_process = IsInsideProcess(facts.get(), peer);
  presented.peer = absl::StrReplaceAll(peer, {{"%5B", "["}, {"%5D", "]"}});
  return presented;
}

}  // namespace rollcall
