// SPDX-License-Identifier: Apache-2.0
#include "agent/link/daemon_channel.h"

#include <grpcpp/grpcpp.h>
#include <spdlog/spdlog.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "agent/link/daemon_names.h"
#include "base/clean_text.h"
#include "base/durations.h"
#include "base/server_address.h"
#include "proto/message_limit.h"
#include "security/certificates/system_authorities.h"
#include "security/connection_probe.h"
#include "security/grpc/credentials.h"

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

// Where another daemon can take over the jobs of one that is paused or lost, seconds count.
constexpr int kQuickKeepaliveMs = 1'500;
constexpr int kQuickKeepaliveTimeoutMs = 2'000;
constexpr std::chrono::seconds kAcceptsWithin{2};  // of several daemons

grpc::ChannelArguments Arguments(Keepalive keepalive) {
  grpc::ChannelArguments arguments;
  const bool is_quick = keepalive == Keepalive::kQuick;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, is_quick ? kQuickKeepaliveMs : kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                   is_quick ? kQuickKeepaliveTimeoutMs : kKeepaliveTimeoutMs);
  if (is_quick) arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
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
  if (daemon.tls_ca.empty() &&
      (!daemon.tls_cert.empty() || !daemon.tls_crl.empty() || !daemon.tls_server_name.empty())) {
    return absl::InvalidArgumentError(
        "TLS needs --tls-ca=FILE, the certificate of the authority that signed the daemon's");
  }
  return absl::OkStatus();
}

// A channel whose calls fail with UNAVAILABLE: no client can connect to this file.
std::shared_ptr<grpc::Channel> BrokenChannel() {
  return grpc::CreateCustomChannel("unix:/dev/null", grpc::InsecureChannelCredentials(),
                                   Arguments(Keepalive::kCalm));
}

}  // namespace

void AddDaemonFlags(CLI::App* app, DaemonAddress* daemon) {
  app->add_option("--daemon", daemon->address,
                  "address of rollcalld, HOST:PORT or unix:PATH; of several that share a database: "
                  "HOST:PORT,HOST:PORT")
      ->group(kDaemonFlagGroup)
      ->envname("ROLLCALL_DAEMON")
      ->capture_default_str();
  AddDaemonSecurityFlags(app, daemon);
}

void AddDaemonSecurityFlags(CLI::App* app, DaemonAddress* daemon) {
  app->add_option("--tls-ca", daemon->tls_ca,
                  "file with the authority of the daemon's certificate, or system: those that this "
                  "system trusts; switches TLS on")
      ->group(kDaemonFlagGroup)
      ->envname("ROLLCALL_TLS_CA");
  app->add_option("--tls-cert", daemon->tls_cert, "file with the certificate to show the daemon")
      ->group(kDaemonFlagGroup)
      ->envname("ROLLCALL_TLS_CERT");
  app->add_option("--tls-key", daemon->tls_key, "file with the key of --tls-cert")
      ->group(kDaemonFlagGroup)
      ->envname("ROLLCALL_TLS_KEY");
  app->add_option("--tls-crl", daemon->tls_crl,
                  "file with the certificates that the authority of --tls-ca has revoked")
      ->group(kDaemonFlagGroup)
      ->envname("ROLLCALL_TLS_CRL");
  app->add_option("--tls-server-name", daemon->tls_server_name,
                  "name in the daemon's certificate, if it is not the host of --daemon")
      ->group(kDaemonFlagGroup)
      ->envname("ROLLCALL_TLS_SERVER_NAME");
  app->add_option("--token-file", daemon->token_file, "file with the token to show the daemon")
      ->group(kDaemonFlagGroup)
      ->envname("ROLLCALL_TOKEN_FILE");
  app->add_option("--daemon-user", daemon->user,
                  "user whose process may be the daemon on this host without TLS, or any; without "
                  "the flag, you and root")
      ->group(kDaemonFlagGroup)
      ->envname("ROLLCALL_DAEMON_USER");
}

DaemonChannels::DaemonChannels(DaemonAddress daemon, std::shared_ptr<Tls> tls)
    : daemon_(std::move(daemon)), addresses_(SplitDaemons(daemon_.address)), tls_(std::move(tls)) {}

absl::StatusOr<std::shared_ptr<DaemonChannels>> DaemonChannels::Open(DaemonAddress daemon) {
  absl::Status status = CheckFlags(daemon);
  if (!status.ok()) return status;
  if (daemon.tls_ca == kSystemAuthorities) {
    absl::StatusOr<std::string> file = FindSystemAuthorities();
    if (!file.ok()) return file.status();
    daemon.tls_ca = *std::move(file);
  }
  const auto tls = std::make_shared<Tls>();
  if (!daemon.tls_ca.empty()) {
    tls->files = std::make_shared<TlsFiles>(
        TlsPaths{daemon.tls_cert, daemon.tls_key, daemon.tls_ca, daemon.tls_crl},
        CertificateUse::kClient);
  }
  const std::shared_ptr<DaemonChannels> channels(new DaemonChannels(std::move(daemon), tls));
  status = channels->Poll();
  for (const std::string& address : channels->addresses_) {
    if (status.ok()) status = channels->Check(address);
  }
  if (!status.ok()) return status;
  return channels;
}

std::shared_ptr<DaemonChannels> DaemonChannels::For(std::string address,
                                                    const std::string& server_name) const {
  DaemonAddress daemon = daemon_;
  daemon.address = std::move(address);
  if (daemon.tls_server_name.empty()) daemon.tls_server_name = server_name;
  return std::shared_ptr<DaemonChannels>(new DaemonChannels(std::move(daemon), tls_));
}

absl::Status DaemonChannels::Check(const std::string& address) const {
  if (addresses_.size() > 1 && SplitServerAddress(address).is_unix) {
    return absl::InvalidArgumentError(
        absl::StrCat("the daemon at ", address, " is on this host: give --daemon=", address,
                     " alone, or ", "HOST:PORT for each of several daemons"));
  }
  return CheckChannel(address, Security());
}

ChannelSecurity DaemonChannels::Security() const {
  ChannelSecurity security = {tls_->files, daemon_.tls_server_name, daemon_.token_file,
                              daemon_.user};
  const int64_t patience_ms = local_patience_ns_ / (kSecond / 1000);
  if (patience_ms != 0) security.local_patience_ms = static_cast<int>(patience_ms);
  return security;
}

// If it fails, the last good files stay in use.
absl::Status DaemonChannels::Poll() const {
  if (tls_->files == nullptr) return absl::OkStatus();
  const MutexLock lock(tls_->mutex);
  return tls_->files->Poll(time(nullptr));
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> DaemonChannels::ConnectTo(
    const std::string& address, Keepalive keepalive) const {
  ChannelSecurity security = Security();
  // Without its token the call fails with the daemon's reason.
  if (!CheckChannel(address, security).ok()) security.token_file.clear();
  return MakeChannel(address, Arguments(keepalive), security);
}

// A channel to this host without TLS is a connection that the daemon has accepted.
bool DaemonChannels::Accepts(const std::string& address, grpc::Channel* channel) const {
  if (tls_->files == nullptr && IsOnThisHost(address)) return true;
  const auto until = std::chrono::system_clock::now() + kAcceptsWithin;
  grpc_connectivity_state state = channel->GetState(/*try_to_connect=*/true);
  while (state != GRPC_CHANNEL_READY) {
    if (state == GRPC_CHANNEL_TRANSIENT_FAILURE) return false;
    if (!channel->WaitForStateChange(state, until)) return false;
    state = channel->GetState(/*try_to_connect=*/true);
  }
  return true;
}

std::shared_ptr<grpc::Channel> DaemonChannels::Connect(Keepalive keepalive) {
  static_cast<void>(Poll());
  size_t begin = 0;
  {
    const MutexLock lock(mutex_);
    begin = begin_;
  }
  absl::StatusOr<std::shared_ptr<grpc::Channel>> first = BrokenChannel();
  size_t used = begin;
  for (size_t i = 0; i < addresses_.size(); ++i) {
    const size_t index = (begin + i) % addresses_.size();
    auto channel = ConnectTo(addresses_[index], keepalive);
    const bool is_last = i + 1 == addresses_.size();
    const bool serves =
        channel.ok() && (addresses_.size() == 1 || Accepts(addresses_[index], channel->get()));
    if (i == 0 || serves) first = std::move(channel);
    if (serves) used = index;
    if (serves || is_last) break;
  }
  const MutexLock lock(mutex_);
  used_ = used;
  last_ = first.status();
  return first.ok() ? *std::move(first) : BrokenChannel();
}

void DaemonChannels::TryAnother() {
  const MutexLock lock(mutex_);
  begin_ = (used_ + 1) % addresses_.size();
}

bool DaemonChannels::IsBusy() const {
  const MutexLock lock(mutex_);
  return absl::IsDeadlineExceeded(last_);
}

bool DaemonChannels::StillTrusts(const grpc::ClientContext& context) {
  if (daemon_.tls_crl.empty()) return true;
  static_cast<void>(Poll());  // a list that is unusable does not replace the last
  return !tls_->files->Current()->revocations.IsRevoked(CertificateOfDaemon(context));
}

std::vector<std::string> DaemonChannels::TakeWarnings() {
  if (tls_->files == nullptr) return {};
  static_cast<void>(Poll());  // its messages name what is wrong
  const MutexLock lock(tls_->mutex);
  return tls_->files->TakeMessages();
}

std::string DaemonChannels::ExplainFor(const std::string& address) const {
  const std::shared_ptr<const TlsContents> contents =
      tls_->files == nullptr ? nullptr : tls_->files->Current();
  return ExplainFailedConnection(address, contents.get(), daemon_.tls_server_name);
}

std::string DaemonChannels::Explain(const grpc::Status& status) const {
  {
    const MutexLock lock(mutex_);
    if (!last_.ok()) return std::string(last_.message());
  }
  if (status.error_code() != grpc::StatusCode::UNAVAILABLE &&
      status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED) {
    return CleanLines(status.error_message());
  }
  for (const std::string& address : addresses_) {
    const std::string reason = ExplainFor(address);
    if (reason.empty()) continue;
    return addresses_.size() == 1 ? reason : absl::StrCat(address, ": ", reason);
  }
  return CleanLines(status.error_message());
}

void LogWarnings(DaemonChannels* channels) {
  for (const std::string& warning : channels->TakeWarnings()) spdlog::warn("{}", warning);
}

}  // namespace rollcall
