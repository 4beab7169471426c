// SPDX-License-Identifier: Apache-2.0
// The connection of an agent, or of the command line, to a daemon: address, TLS and token.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "security/tls_files.h"

namespace CLI {
class App;
}
namespace grpc {
class Channel;
class ClientContext;
class Status;
}  // namespace grpc

namespace rollcall {

struct ChannelSecurity;

struct DaemonAddress {
  std::string address = "127.0.0.1:7655";  // HOST:PORT or unix:PATH
  // Files; without `tls_ca` there is no TLS. `tls_ca` may be kSystemAuthorities.
  std::string tls_ca, tls_cert, tls_key;
  std::string tls_crl;                    // of the authorities in `tls_ca`; "": none
  std::string tls_server_name;            // "": the host of `address`
  std::string token_file;
  std::string user;  // --daemon-user
};

// Adds --daemon, which `rollcall run` explains in its own words, and the flags of the other members.
void AddDaemonFlags(CLI::App* app, DaemonAddress* daemon);
void AddDaemonSecurityFlags(CLI::App* app, DaemonAddress* daemon);

// Thread-safe.
class DaemonChannels {
 public:
  // Reads the files. An error says which flag is wrong, and what to type.
  static absl::StatusOr<std::shared_ptr<DaemonChannels>> Open(DaemonAddress daemon);

  // A new channel, with the files as they are now; with the last good ones if they are unusable. If the
  // daemon on this host cannot be reached, or is somebody else's, all calls of the channel fail with
  // UNAVAILABLE. A channel that has failed so may never work again: connect anew. A keepalive detects a
  // lost daemon host after three minutes. Until then the connection stays open, even while the daemon
  // does not answer.
  std::shared_ptr<grpc::Channel> Connect();

  // Whether the daemon of this stream, which must have answered, has still a certificate that nobody has
  // revoked, by the list as it is now.
  bool StillTrusts(const grpc::ClientContext& context);

  // Warnings for the log about the files of TLS as they are now, since the last call: what cannot be
  // used, what expires soon. Each is repeated after an hour.
  std::vector<std::string> TakeWarnings();

  // Why a call has failed, for people: the status, and what TLS says. May connect once, and wait for
  // seconds.
  std::string Explain(const grpc::Status& status) const;
  const std::string& address() const { return daemon_.address; }

 private:
  explicit DaemonChannels(DaemonAddress daemon);
  ChannelSecurity Security() const;

  const DaemonAddress daemon_;
  const std::shared_ptr<TlsFiles> tls_;  // nullptr: none
  mutable std::mutex mutex_;             // for TlsFiles::Poll(), and:
  absl::Status last_;                    // of the last Connect()
};

// Writes what TakeWarnings() returns to the log.
void LogWarnings(DaemonChannels* channels);

}  // namespace rollcall
