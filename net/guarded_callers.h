// SPDX-License-Identifier: Apache-2.0
// Which connections to the gRPC port have a caller that the daemon knows. The daemon names them by
// descriptor, and the guard of a connection with TLS sees only OpenSSL's object: gRPC leads the
// bytes from one to the other. Both have the random number with which the client begins its
// handshake.
//
// A descriptor may be given out again, so each entry has the kernel's number of its socket. An
// entry lives until its connection ends without a known caller, or its descriptor is given out
// again. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>

#include "base/mutex.h"

namespace rollcall {

using TlsRandom = std::array<uint8_t, 32>;

// The first bytes of a connection with TLS: the message in which the client says its random number
// (RFC 8446, 4.1.2). Pure.
class ClientHello {
 public:
  // Reads the next bytes. Returns true if it needs no more of them.
  bool Read(const uint8_t* at, size_t size);
  // nullopt if it is not complete, or is another message.
  std::optional<TlsRandom> random() const;

 private:
  static constexpr size_t kRandomAt = 11;
  std::array<uint8_t, kRandomAt + std::tuple_size_v<TlsRandom>> bytes_{};
  size_t size_ = 0;
};

// What the daemon and the guard tell each other about the caller of a connection.
struct GuardedCaller {
  std::atomic<bool> is_known{false};    // to the daemon
  std::atomic<bool> has_called{false};  // a call has begun
};

class GuardedCallers {
 public:
  using Caller = std::shared_ptr<GuardedCaller>;

  // A new connection, with the inode of its socket.
  Caller Add(int fd, uint64_t inode, bool is_tls);
  // These do nothing if the descriptor has another socket by now.
  // The daemon knows the caller.
  void Admit(int fd, uint64_t inode);
  // The connection has ended, or ends now.
  void End(int fd, uint64_t inode);
  bool HasCalled(int fd, uint64_t inode) const;

  // Whether the next bytes of any connection are still of interest; without the lock.
  bool AwaitsHellos() const { return hellos_count_.load() > 0; }
  // These bytes have come on this connection.
  void Read(int fd, uint64_t inode, const uint8_t* at, size_t size);
  // Returns the connection whose client began with this number; nullptr if there is none.
  Caller Find(const TlsRandom& random) const;

 private:
  struct Connection {
    uint64_t inode = 0;
    Caller caller;
    std::optional<TlsRandom> random;
  };
  const Connection* FindConnection(int fd, uint64_t inode) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(int fd) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetHello(int fd) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::atomic<size_t> hellos_count_{0};
  mutable Mutex mutex_;
  std::unordered_map<int, Connection> connections_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<int, ClientHello> hellos_ ABSL_GUARDED_BY(mutex_);  // not read yet
  std::map<TlsRandom, int> by_random_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rollcall
