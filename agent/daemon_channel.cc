// SPDX-License-Identifier: Apache-2.0
#include "agent/daemon_channel.h"

#include <grpcpp/grpcpp.h>
#include <spdlog/spdlog.h>
#include <time.h>

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "proto/message_limit.h"
#include "security/connection_probe.h"
#include "security/grpc/credentials.h"
#include "security/system_authorities.h"

namespace rollcall {
namespace {

// Without a keepalive, a connection to a lost host stays open for hours. These times are minutes
// and not seconds: a daemon that is paused for seconds must not lose all its agents at once, since
// all of them would reconnect at once.
constexpr int kKeepaliveMs = 120'000;
constexpr int kKeepaliveTimeoutMs = 60'000;
// gRPC's usual pauses between two tries to connect grow to minutes. An agent must be back within
// five seconds after its daemon.
constexpr int kFirstBackoffMs = 100;
constexpr int kLongestBackoffMs = 2'000;
constexpr int kConnectTimeoutMs = 5'000;

grpc::ChannelArguments Arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstBackoffMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kLongestBackoffMs);
  // Otherwise a new channel shares the pause of the last one before its next try.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // Despite its name, the time that one try may take.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectTimeoutMs);
  return arguments;
}

absl::Status CheckFlags(const DaemonAddress& daemon) {
  if (daemon.tls_cert.empty() != daemon.tls_key.empty()) {
    return absl::InvalidArgumentError("--tls-cert and --tls-key belong together: give both");
  }
  if (daemon.tls_ca.empty() && (!daemon.tls_cert.empty() || !daemon.tls_crl.empty() ||
                                !daemon.tls_server_name.empty())) {
    return absl::InvalidArgumentError(
        "TLS needs --tls-ca=FILE, the certificate of the authority that signed the daemon's");
  }
  return absl::OkStatus();
}

// A channel whose calls fail with UNAVAILABLE: nobody can connect to this file.
std::shared_ptr<grpc::Channel> BrokenChannel() {
  return grpc::CreateCustomChannel("unix:/dev/null", grpc::InsecureChannelCredentials(),
                                   Arguments());
}

}  // namespace

void AddDaemonFlags(CLI::App* app, DaemonAddress* daemon) {
  app->add_option("--daemon", daemon->address, "address of rollcalld, HOST:PORT or unix:PATH")
      ->envname("ROLLCALL_DAEMON")
      ->capture_default_str();
  AddDaemonSecurityFlags(app, daemon);
}

void AddDaemonSecurityFlags(CLI::App* app, DaemonAddress* daemon) {
  app->add_option("--tls-ca", daemon->tls_ca,
                  "file with the authority of the daemon's certificate, or system: those that this "
                  "system trusts; switches TLS on")
      ->envname("ROLLCALL_TLS_CA");
  app->add_option("--tls-cert", daemon->tls_cert, "file with the certificate to show the daemon")
      ->envname("ROLLCALL_TLS_CERT");
  app->add_option("--tls-key", daemon->tls_key, "file with the key of --tls-cert")
      ->envname("ROLLCALL_TLS_KEY");
  app->add_option("--tls-crl", daemon->tls_crl,
                  "file with the certificates that the authority of --tls-ca has revoked")
      ->envname("ROLLCALL_TLS_CRL");
  app->add_option("--tls-server-name", daemon->tls_server_name,
                  "name in the daemon's certificate, if it is not the host of --daemon")
      ->envname("ROLLCALL_TLS_SERVER_NAME");
  app->add_option("--token-file", daemon->token_file, "file with the token to show the daemon")
      ->envname("ROLLCALL_TOKEN_FILE");
  app->add_option("--daemon-user", daemon->user,
                  "user whose process may be the daemon on this host without TLS, or any; without "
                  "the flag, you and root")
      ->envname("ROLLCALL_DAEMON_USER");
}

DaemonChannels::DaemonChannels(DaemonAddress daemon)
    : daemon_(std::move(daemon)),
      tls_(daemon_.tls_ca.empty()
               ? nullptr
               : std::make_shared<TlsFiles>(
                     TlsPaths{daemon_.tls_cert, daemon_.tls_key, daemon_.tls_ca, daemon_.tls_crl},
                     CertificateUse::kClient)) {}

absl::StatusOr<std::shared_ptr<DaemonChannels>> DaemonChannels::Open(DaemonAddress daemon) {
  absl::Status status = CheckFlags(daemon);
  if (!status.ok()) return status;
  if (daemon.tls_ca == kSystemAuthorities) {
    absl::StatusOr<std::string> file = FindSystemAuthorities();
    if (!file.ok()) return file.status();
    daemon.tls_ca = *std::move(file);
  }
  const std::shared_ptr<DaemonChannels> channels(new DaemonChannels(std::move(daemon)));
  if (channels->tls_ != nullptr) status = channels->tls_->Poll(time(nullptr));
  if (!status.ok()) return status;
  status = CheckChannel(channels->address(), channels->Security());
  if (!status.ok()) return status;
  return channels;
}

ChannelSecurity DaemonChannels::Security() const {
  return {tls_, daemon_.tls_server_name, daemon_.token_file, daemon_.user};
}

std::shared_ptr<grpc::Channel> DaemonChannels::Connect() {
  if (tls_ != nullptr) {
    const std::lock_guard<std::mutex> lock(mutex_);
    static_cast<void>(tls_->Poll(time(nullptr)));  // the last good files stay in use
  }
  ChannelSecurity security = Security();
  // Without its token the call fails, and the daemon says why.
  if (!CheckChannel(daemon_.address, security).ok()) security.token_file.clear();
  auto channel = MakeChannel(daemon_.address, Arguments(), security);
  const std::lock_guard<std::mutex> lock(mutex_);
  last_ = channel.status();
  return channel.ok() ? *std::move(channel) : BrokenChannel();
}

bool DaemonChannels::StillTrusts(const grpc::ClientContext& context) {
  if (daemon_.tls_crl.empty()) return true;
  const std::lock_guard<std::mutex> lock(mutex_);
  static_cast<void>(tls_->Poll(time(nullptr)));  // a list that is unusable does not replace the last
  return !tls_->Current()->revocations.IsRevoked(CertificateOfDaemon(context));
}

std::vector<std::string> DaemonChannels::TakeWarnings() {
  if (tls_ == nullptr) return {};
  const std::lock_guard<std::mutex> lock(mutex_);
  static_cast<void>(tls_->Poll(time(nullptr)));  // its messages say what is wrong
  return tls_->TakeMessages();
}

std::string DaemonChannels::Explain(const grpc::Status& status) const {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!last_.ok()) return std::string(last_.message());
  }
  if (status.error_code() != grpc::StatusCode::UNAVAILABLE &&
      status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED) {
    return status.error_message();
  }
  const std::shared_ptr<const TlsContents> contents = tls_ == nullptr ? nullptr : tls_->Current();
  const std::string reason =
      ExplainFailedConnection(daemon_.address, contents.get(), daemon_.tls_server_name);
  return reason.empty() ? status.error_message() : reason;
}

void LogWarnings(DaemonChannels* channels) {
  for (const std::string& warning : channels->TakeWarnings()) spdlog::warn("{}", warning);
}

}  // namespace rollcall
