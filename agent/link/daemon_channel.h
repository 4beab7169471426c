// SPDX-License-Identifier: Apache-2.0
// The connection of an agent, or of the command line, to a daemon: address, TLS and token.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "security/certificates/tls_files.h"

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
  // HOST:PORT or unix:PATH; several daemons of one database as HOST:PORT,HOST:PORT.
  std::string address = "127.0.0.1:7655";
  // Files; without `tls_ca` there is no TLS. `tls_ca` may be kSystemAuthorities.
  std::string tls_ca, tls_cert, tls_key;
  std::string tls_crl;          // of the authorities in `tls_ca`, or empty
  std::string tls_server_name;  // empty means the host in `address`
  std::string token_file;
  std::string user;  // --daemon-user
};

// The group of these flags in a --help. It comes last, since it begins with the last of the flags.
inline constexpr char kDaemonFlagGroup[] = "To reach a daemon";

// Adds --daemon, which `rollcall run` explains in its own words, and the flags of the other
// members.
void AddDaemonFlags(CLI::App* app, DaemonAddress* daemon);
void AddDaemonSecurityFlags(CLI::App* app, DaemonAddress* daemon);

// How soon a connection notices that its daemon, or the way to it, is lost.
enum class Keepalive : uint8_t {
  kCalm,   // after three minutes
  kQuick,  // within five seconds: another daemon can take over. Only for daemons that permit it
};

// Thread-safe.
class DaemonChannels {
 public:
  // Reads the files. An error names the wrong flag and what to type.
  static absl::StatusOr<std::shared_ptr<DaemonChannels>> Open(DaemonAddress daemon);
  // Returns channels to the one daemon at this address, by the same files. Its certificate must
  // hold `server_name`; empty means that of --tls-server-name, or else the host of the address. The
  // address may be wrong: then all calls fail with that error.
  std::shared_ptr<DaemonChannels> For(std::string address, const std::string& server_name) const;

  // A new channel, with the files as they are now; with the last good ones if they are unusable. If
  // the daemon on this host cannot be reached, or is somebody else's, all calls of the channel fail
  // with UNAVAILABLE. A channel that has failed so may never work again: connect anew. A keepalive
  // detects a lost daemon host. Until then the connection stays open, even while the daemon does
  // not answer.
  //
  // Connects to the first of several daemons that accepts a connection; waits two seconds for each.
  std::shared_ptr<grpc::Channel> Connect(Keepalive keepalive = Keepalive::kCalm);
  // The daemon of the last channel accepts connections and does not answer: the next Connect()
  // begins with the one after it.
  void TryAnother();

  // Whether the daemon of this stream, which must have answered, still has a certificate that the
  // present list does not revoke.
  bool StillTrusts(const grpc::ClientContext& context);

  // Warnings for the log about the files of TLS as they are now, since the last call: what cannot
  // be used, what expires soon. Each is repeated after an hour.
  std::vector<std::string> TakeWarnings();

  // Whether the daemon of the last Connect() listens on this host and was too busy to accept the
  // connection. The next Connect() may succeed; with WaitFor() it keeps its place for longer among
  // those who wait.
  bool IsBusy() const;
  void WaitFor(int64_t ns) { local_patience_ns_ = ns; }

  // Why a call has failed, for people: the status, and the error of TLS. May connect once, and wait
  // for seconds.
  std::string Explain(const grpc::Status& status) const;
  const std::string& address() const { return daemon_.address; }  // as given: of all daemons
  size_t count() const { return addresses_.size(); }

 private:
  // Shared by the channels to several daemons.
  struct Tls {
    std::shared_ptr<TlsFiles> files;  // nullptr if there is none
    Mutex mutex;                      // for TlsFiles::Poll()
  };

  DaemonChannels(DaemonAddress daemon, std::shared_ptr<Tls> tls);
  ChannelSecurity Security() const;
  absl::Status Check(const std::string& address) const;
  absl::Status Poll() const;
  absl::StatusOr<std::shared_ptr<grpc::Channel>> ConnectTo(const std::string& address,
                                                           Keepalive keepalive) const;
  bool Accepts(const std::string& address, grpc::Channel* channel) const;
  std::string ExplainFor(const std::string& address) const;

  const DaemonAddress daemon_;
  const std::vector<std::string> addresses_;  // of `daemon_`
  const std::shared_ptr<Tls> tls_;
  std::atomic<int64_t> local_patience_ns_{0};  // 0 means the usual one
  mutable Mutex mutex_;
  absl::Status last_ ABSL_GUARDED_BY(mutex_);  // of the last Connect()
  // Indexes of `addresses_`: for the next Connect(), of the last one.
  size_t begin_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t used_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Writes what TakeWarnings() returns to the log.
void LogWarnings(DaemonChannels* channels);

}  // namespace rollcall
