// SPDX-License-Identifier: Apache-2.0
// TLS and tokens for gRPC: of the daemon's port, and of the channels to it.
//
// The credentials follow TlsFiles: a new certificate serves new connections within two seconds of
// Poll(), without a restart; open connections go on. TLS 1.2 at least.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "security/authenticator.h"
#include "security/certificates/tls_files.h"
#include "security/local_connection.h"

namespace rollcall {

enum class ClientCertificate {
  kOptional,  // tokens work without; a certificate that does not verify is still refused
  kRequired,
};

// `files` must have a certificate and a Current(). Without authorities clients are not asked for a
// certificate, whatever `client` holds.
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const TlsFiles& files,
                                                               ClientCertificate client);

// How a client reaches a daemon.
struct ChannelSecurity {
  // With a Current() and authorities; nullptr without TLS. Somebody must call Poll() if the files
  // may change while the channel lives. With a revocation list, a new connection to a daemon whose
  // certificate it revokes fails.
  std::shared_ptr<const TlsFiles> tls;
  // The name that the daemon's certificate must hold; empty means the host of the address.
  std::string server_name;
  std::string token_file;  // may be empty
  // The user that the client trusts to run the daemon on this host without TLS, as
  // DaemonUser::Parse() reads it.
  std::string daemon_user;
  // If false, it does not show the certificate of `tls`. A server's may not be one for clients.
  bool shows_certificate = true;
  // The calls carry a secret besides `token_file`.
  bool sends_secret = false;
  // How long it waits for a busy daemon on this host without TLS; see ConnectOnThisHost().
  int local_patience_ms = kLocalPatienceMs;
};

// Whether a channel can be made: the flags, and the token file. Connects to nothing.
absl::Status CheckChannel(const std::string& address, const ChannelSecurity& security);

// A channel that adds the token of the file to each call. Fails where CheckChannel() does.
//
// Without TLS, a channel to this host is one connection: it is made here, which may take two
// seconds, and only to a daemon of an accepted user (see ConnectOnThisHost() for the errors). When
// it breaks, its calls fail with UNAVAILABLE, and the caller makes another one. Other channels
// connect later, and again when they break.
//
// Only a channel with TLS to another host obeys http_proxy: the proxy sees the encrypted bytes.
absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(const std::string& address,
                                                           grpc::ChannelArguments arguments,
                                                           const ChannelSecurity& security);

// The certificate, in PEM, that the daemon showed for a call that it has answered; "" without TLS.
std::string CertificateOfDaemon(const grpc::ClientContext& context);

// What the caller of `context` presented. `peer` is as Authenticator wants it: brackets of an IPv6
// address are not escaped.
Presented PresentedBy(const grpc::ServerContextBase& context);

}  // namespace rollcall
