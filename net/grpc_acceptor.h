// SPDX-License-Identifier: Apache-2.0
// Accepts the connections of the gRPC port, and gives them to gRPC, some at a time.
//
// gRPC's own listener stops for ever when the process has no file descriptor left, and it limits no
// connection whose caller is unknown. This one keeps descriptors in reserve, closes clients that
// send nothing or that the daemon does not identify (pending_connections.h), and goes on as soon as
// a descriptor is free.
//
// Owns one thread, which never waits for a client.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/unique_fd.h"
#include "net/guarded_reads.h"
#include "net/http_listener.h"
#include "net/http_poller.h"
#include "net/loopback_connections.h"
#include "net/pending_connections.h"

namespace rollcall {

// Reasons, as label values of rollcall_refused_total.
inline constexpr char kRefusedSilent[] = "silent";            // sent nothing
inline constexpr char kRefusedUnknown[] = "unknown";          // made no call that the daemon admits
inline constexpr char kRefusedCrowd[] = "crowd";              // more than a limit
inline constexpr char kRefusedDescriptors[] = "descriptors";  // no file descriptor is free
inline constexpr char kRefusedFrames[] = "frames";            // sent what Http2Guard refuses
// Another open connection has the same address and port on this host.
inline constexpr char kRefusedTwin[] = "twin";

struct GrpcAcceptorOptions {
  PendingLimits limits;
  // Gets a connected socket that does not block, and owns it.
  std::function<void(int fd)> hand_over;
  // Called with each connection whose caller the daemon has identified, and the inode of its
  // socket; may be empty.
  std::function<void(int fd, uint64_t inode)> admitted;
  // Returns whether a call has begun on this connection, which gRPC has; may be empty: none has.
  std::function<bool(int fd, uint64_t inode)> has_called;
  // Called with each connection that ends, or must end, before the daemon has identified its
  // caller; may be empty. Does not wait.
  std::function<void(int fd, uint64_t inode)> ended;
  // Told of each connection that this object closes; may be empty.
  std::function<void(const std::string& reason, const std::string& text)> refused;
};

class GrpcAcceptor {
 public:
  // `listeners` are bound sockets.
  GrpcAcceptor(std::vector<UniqueFd> listeners, GrpcAcceptorOptions options);
  ~GrpcAcceptor() { Stop(); }
  GrpcAcceptor(const GrpcAcceptor&) = delete;
  GrpcAcceptor& operator=(const GrpcAcceptor&) = delete;

  // False if no file descriptor is free.
  bool Start();
  // Afterwards nothing is handed over.
  void Stop();

  // The daemon has identified the caller at this peer, as Presented names it. Any thread.
  void Admit(const std::string& peer);
  // The address of this host at which the connection of a peer on loopback arrived, in the form of
  // Presented; empty if unknown. Any thread.
  std::string LocalAddressOf(const std::string& peer) const;
  // Whether clients have waited for a descriptor for some seconds. Any thread.
  bool IsStarved() const { return is_starved_; }

 private:
  void Serve();
  void AcceptFrom(HttpListener* listener);
  bool HasPlace();
  void MakeRoom();
  void Take(int fd, const std::string& peer);
  std::string CrowdOf(int fd, const std::string& peer);
  bool IsDistinct(int fd, const std::string& peer);
  bool FreeDescriptor();
  void CloseAbandoned(int fd);
  void HandOver();
  void Sweep();
  void LookAtThoseInGrpc(int64_t now_ns);
  PendingConnections::Progress ProgressOf(const PendingConnections::Connection& connection) const;
  void TellOfGuard();
  void Starve();
  void EndStarving();
  bool Replace(int fd, const char* reason);
  void Refuse(const char* reason, const std::string& text);
  int64_t Now();

  const GrpcAcceptorOptions options_;
  HttpPoller poller_;
  std::vector<std::unique_ptr<HttpListener>> listeners_;
  // Only the thread of the acceptor uses these.
  int64_t clock_ns_ = 0, looked_ns_ = 0, swept_ns_ = 0, starved_ns_ = 0;
  size_t descriptors_ = 0;  // limit of this process
  uint64_t told_of_guard_ = EndedByGuard().count;
  std::atomic<bool> is_starved_{false}, stopping_{false};
  mutable Mutex mutex_;
  PendingConnections pending_ ABSL_GUARDED_BY(mutex_);
  LoopbackConnections loopback_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace rollcall
