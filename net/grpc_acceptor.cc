// SPDX-License-Identifier: Apache-2.0
#include "net/grpc_acceptor.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/descriptors.h"
#include "base/durations.h"
#include "base/peer_address.h"
#include "base/steady_clock.h"
#include "net/http_connection.h"
#include "security/failed_logins.h"
#include "security/http_watchdog.h"
#include "security/loopback_peer.h"

namespace rollcall {
namespace {

constexpr int kSweepMs = 200;
// A clock that ran while this process did not would make every client late.
constexpr int64_t kLongestStepNs = kSecond;
constexpr int64_t kStarvedAfterNs = 5 * kSecond;
// As gRPC's keepalive: data that a client's host does not confirm for so long ends the connection.
constexpr unsigned kUnconfirmedMs = 60'000;
constexpr int kMostAtOnce = 256;  // connections, before others have their turn

// 0 if it is not open.
uint64_t InodeOf(int fd) {
  struct stat file = {};
  return fstat(fd, &file) == 0 && S_ISSOCK(file.st_mode) ? file.st_ino : 0;
}

// Descriptors for the page, reports and the history.
size_t ReserveOf(size_t descriptors) { return std::clamp<size_t>(descriptors / 8, 16, 512); }

// Whether bytes have come that gRPC has not read.
bool HasUnread(int fd) {
  int bytes = 0;
  return ioctl(fd, FIONREAD, &bytes) == 0 && bytes > 0;
}

}  // namespace

GrpcAcceptor::GrpcAcceptor(std::vector<UniqueFd> listeners, GrpcAcceptorOptions options)
    : options_(std::move(options)),
      descriptors_(DescriptorLimit()),
      pending_(options_.limits),
      loopback_(InodeOf) {
  for (UniqueFd& fd : listeners) {
    listeners_.push_back(std::make_unique<HttpListener>(std::move(fd), &poller_));
  }
}

bool GrpcAcceptor::Start() {
  if (!poller_.is_open()) return false;
  for (const auto& listener : listeners_) listener->Start();
  looked_ns_ = SteadyNs();
  thread_ = std::thread([this] { Serve(); });
  return true;
}

void GrpcAcceptor::Stop() {
  stopping_ = true;
  poller_.Wake();
  if (thread_.joinable()) thread_.join();
  for (const auto& listener : listeners_) listener->Close();
  const MutexLock lock(mutex_);
  for (const PendingConnections::Connection& connection : pending_.All()) {
    if (!connection.is_in_grpc) close(connection.fd);
    pending_.Remove(connection.fd);
  }
}

int64_t GrpcAcceptor::Now() {
  const int64_t now_ns = SteadyNs();
  clock_ns_ += std::min(now_ns - looked_ns_, kLongestStepNs);
  looked_ns_ = now_ns;
  return clock_ns_;
}

void GrpcAcceptor::Serve() {
  while (true) {
    const std::vector<HttpPoller::Ready> all = poller_.Wait(kSweepMs);
    if (stopping_) return;
    for (const HttpPoller::Ready& ready : all) {
      const auto at = std::find_if(listeners_.begin(), listeners_.end(), [&ready](const auto& one) {
        return HttpPoller::KeyOf(one->fd()) == ready.key;
      });
      if (at == listeners_.end()) CloseAbandoned(static_cast<int>(ready.key));
    }
    descriptors_ = DescriptorLimit();
    // Afterwards: a new connection may get the descriptor of one that has just been closed.
    for (const auto& listener : listeners_) AcceptFrom(listener.get());
    Sweep();
    HandOver();
  }
}

void GrpcAcceptor::AcceptFrom(HttpListener* listener) {
  // accept() reports a lack of descriptors also if no connection waits.
  if (!listener->HasClient()) return EndStarving();
  for (int i = 0; i < kMostAtOnce; ++i) {
    if (!HasPlace()) return listener->Pause();
    const HttpListener::Accepted next = listener->Accept();
    if (next.fd >= 0) {
      EndStarving();
      MakeRoom();
      Take(next.fd, next.peer);
    } else if (!next.lacks_descriptor) {
      return;
    } else if (!FreeDescriptor()) {
      Starve();
      return listener->Pause();
    }
  }
}

// Without a place, clients wait in the queue of the system.
bool GrpcAcceptor::HasPlace() {
  const MutexLock lock(mutex_);
  return pending_.FindPlace(Now()).room != PendingConnections::Room::kNone;
}

// For a connection that has come, where the table is full.
void GrpcAcceptor::MakeRoom() {
  PendingConnections::Place place;
  {
    const MutexLock lock(mutex_);
    place = pending_.FindPlace(Now());
  }
  if (place.room == PendingConnections::Room::kReplaces) Replace(place.replaces, kRefusedCrowd);
}

void GrpcAcceptor::Take(int fd, const std::string& peer) {
  if (absl::StartsWith(peer, "unix:")) return options_.hand_over(fd);
  // The system gives out the lowest free number.
  const bool takes_reserve = static_cast<size_t>(fd) + ReserveOf(descriptors_) >= descriptors_;
  if (takes_reserve && !FreeDescriptor()) {
    close(fd);
    return Refuse(kRefusedDescriptors, absl::StrCat("a connection of ", peer, ": ", descriptors_,
                                                    " file descriptors are the limit of this "
                                                    "process (ulimit -n, LimitNOFILE=)"));
  }
  const std::string network = CrowdOf(fd, peer);
  if (NetworkOf(peer) == kOwnNetwork && !IsDistinct(fd, peer)) {
    close(fd);
    return Refuse(kRefusedTwin, absl::StrCat("a connection of ", peer,
                                             ": another one has the same address and port"));
  }
  const int64_t now_ns = Now();
  PendingConnections::Place place;
  {
    const MutexLock lock(mutex_);
    place = pending_.FindPlaceFor(network, now_ns);
    if (place.room != PendingConnections::Room::kNone) {
      pending_.Add({fd, InodeOf(fd), PeerKey(peer), network, now_ns});
    }
  }
  if (place.room == PendingConnections::Room::kNone) {
    close(fd);
    return Refuse(kRefusedCrowd, absl::StrCat("a connection of ", peer,
                                              ": too many of this address have made no call yet"));
  }
  if (place.room == PendingConnections::Room::kReplaces) Replace(place.replaces, kRefusedCrowd);
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUnconfirmedMs, sizeof(kUnconfirmedMs));
  poller_.Add(fd, EPOLLRDHUP);
}

// NetworkOf(), with other users of this host apart, so that none of them can take all places. The
// kernel has them, but only a crowd is worth the query.
std::string GrpcAcceptor::CrowdOf(int fd, const std::string& peer) {
  const std::string network = NetworkOf(peer);
  if (network != kOwnNetwork) return network;
  {
    const MutexLock lock(mutex_);
    if (!pending_.IsCrowded()) return network;
  }
  const auto there = ParsePeer(peer), here = ParsePeer(rollcall::LocalAddressOf(fd));
  if (!there || !here) return network;
  const LoopbackPeer found = FindLoopbackPeer(*there, *here);
  if (found.state == LoopbackPeer::State::kNobody) return "loopback, closed";
  const bool is_other =
      found.state == LoopbackPeer::State::kKnown && found.user != 0 && found.user != geteuid();
  return is_other ? absl::StrCat("loopback, uid ", found.user) : network;
}

// gRPC names the caller of a call by its address and port alone, but users of this host may have
// the same ones, each for a connection to another address of this host. So only one may be open.
bool GrpcAcceptor::IsDistinct(int fd, const std::string& peer) {
  const MutexLock lock(mutex_);
  return loopback_.Add(fd, PeerKey(peer), rollcall::LocalAddressOf(fd));
}

std::string GrpcAcceptor::LocalAddressOf(const std::string& peer) const {
  const MutexLock lock(mutex_);
  return loopback_.LocalAddressOf(PeerKey(peer));
}

// Closes the connection that may be replaced, if there is one. False if no descriptor is free yet;
// gRPC needs a moment to close those that it owns.
bool GrpcAcceptor::FreeDescriptor() {
  PendingConnections::Place place;
  {
    const MutexLock lock(mutex_);
    place = pending_.FindOldest(Now());
  }
  return place.room == PendingConnections::Room::kReplaces &&
         Replace(place.replaces, kRefusedDescriptors);
}

// The client of a connection that waits for its turn has given up.
void GrpcAcceptor::CloseAbandoned(int fd) {
  const MutexLock lock(mutex_);
  const PendingConnections::Connection* connection = pending_.Find(fd);
  if (connection == nullptr || connection->is_in_grpc) return;
  pending_.Remove(fd);
  close(fd);
}

void GrpcAcceptor::HandOver() {
  while (true) {
    std::optional<int> fd;
    {
      // Before gRPC has it: gRPC may admit its caller, or close it, at once.
      const MutexLock lock(mutex_);
      fd = pending_.TakeTurn(Now());
    }
    if (!fd) return;
    poller_.Remove(*fd);
    options_.hand_over(*fd);
  }
}

void GrpcAcceptor::Admit(const std::string& peer) {
  bool has_waiting = false;
  std::optional<PendingConnections::Connection> known;
  {
    const MutexLock lock(mutex_);
    known = pending_.RemovePeer(PeerKey(peer));
    has_waiting = pending_.HasWaiting();
  }
  if (known.has_value() && options_.admitted) options_.admitted(known->fd, known->inode);
  if (has_waiting) poller_.Wake();
}

PendingConnections::Progress GrpcAcceptor::ProgressOf(
    const PendingConnections::Connection& connection) const {
  const bool has_called =
      options_.has_called && options_.has_called(connection.fd, connection.inode);
  return {ReceivedBytes(connection.fd), HasUnread(connection.fd), has_called};
}

void GrpcAcceptor::LookAtThoseInGrpc(int64_t now_ns) {
  const MutexLock lock(mutex_);
  for (const PendingConnections::Connection& connection : pending_.All()) {
    if (!connection.is_in_grpc) continue;
    if (InodeOf(connection.fd) != connection.inode) {
      pending_.Remove(connection.fd);  // gRPC has closed it
      if (options_.ended) options_.ended(connection.fd, connection.inode);
    } else if (!connection.has_called) {
      pending_.Saw(connection.fd, ProgressOf(connection), now_ns);
    }
  }
}

void GrpcAcceptor::TellOfGuard() {
  const GuardedEnds ends = EndedByGuard();
  for (; told_of_guard_ < ends.count; ++told_of_guard_) {
    Refuse(kRefusedFrames,
           absl::StrCat("a client of the gRPC port sent ", ends.reason, ": ended its connection"));
  }
}

void GrpcAcceptor::Sweep() {
  const int64_t now_ns = Now();
  if (now_ns - swept_ns_ < int64_t{kSweepMs} * 1'000'000) return;
  swept_ns_ = now_ns;
  for (const auto& listener : listeners_) listener->Resume();
  LookAtThoseInGrpc(now_ns);
  TellOfGuard();
  std::vector<PendingConnections::Connection> late;
  {
    const MutexLock lock(mutex_);
    late = pending_.Late(now_ns);
  }
  for (const PendingConnections::Connection& connection : late) {
    Replace(connection.fd,
            connection.is_in_grpc && !connection.has_spoken() ? kRefusedSilent : kRefusedUnknown);
  }
}

void GrpcAcceptor::EndStarving() {
  starved_ns_ = 0;
  is_starved_ = false;
}

void GrpcAcceptor::Starve() {
  const int64_t now_ns = Now();
  if (starved_ns_ != 0) {
    is_starved_ = now_ns - starved_ns_ >= kStarvedAfterNs;
    return;
  }
  starved_ns_ = now_ns;
  Refuse(kRefusedDescriptors,
         absl::StrCat("clients of the gRPC port wait, because all ", descriptors_,
                      " file descriptors of this process are in use (ulimit -n, LimitNOFILE=)"));
}

// True if the descriptor is free.
bool GrpcAcceptor::Replace(int fd, const char* reason) {
  PendingConnections::Connection connection;
  {
    const MutexLock lock(mutex_);
    const PendingConnections::Connection* found = pending_.Find(fd);
    if (found == nullptr) return false;
    connection = *found;
    pending_.Remove(fd);
  }
  // gRPC closes a descriptor that it owns when it sees the end.
  if (!connection.is_in_grpc) {
    close(fd);
  } else if (InodeOf(fd) == connection.inode) {
    shutdown(fd, SHUT_RDWR);
  }
  if (connection.is_in_grpc && options_.ended) options_.ended(fd, connection.inode);
  Refuse(reason, absl::StrCat("the connection of ", connection.peer,
                              connection.is_in_grpc && !connection.has_spoken()
                                  ? ": it sent nothing"
                                  : ": it made no authenticated call"));
  return !connection.is_in_grpc;
}

void GrpcAcceptor::Refuse(const char* reason, const std::string& text) {
  if (options_.refused) options_.refused(reason, text);
}

}  // namespace rollcall
