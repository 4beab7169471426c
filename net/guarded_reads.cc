// SPDX-License-Identifier: Apache-2.0
#include "net/guarded_reads.h"

#include <dlfcn.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <unordered_map>

#include "base/fair_bytes.h"
#include "base/mutex.h"
#include "base/steady_clock.h"
#include "net/guarded_callers.h"
#include "net/http2_guard.h"

// In a static program the linker leads the calls of these two here (--wrap, net/CMakeLists.txt):
// the libraries' own definitions are in there, too.
#ifdef ROLLCALL_PORTABLE
#define ROLLCALL_GUARDED(name) __wrap_##name
extern "C" int __real_SSL_read(SSL* ssl, void* buffer, int room);
#else
#define ROLLCALL_GUARDED(name) name
#endif

namespace rollcall {
namespace {

using SslRead = int (*)(SSL*, void*, int);

SslRead RealRead() {
#ifdef ROLLCALL_PORTABLE
  return &__real_SSL_read;
#else
  static const auto real = reinterpret_cast<SslRead>(dlsym(RTLD_NEXT, "SSL_read"));
  return real;
#endif
}

// What has come of messages that are not complete, of all connections that have much of it. An
// agent's messages have about one MiB.
constexpr uint64_t kMuchHeld = 2 << 20;
constexpr size_t kMostHeld = size_t{512} << 20;
FairBytes<const Http2Guard*>& AllHeld() {
  static auto* const all = new FairBytes<const Http2Guard*>(kMostHeld);  // as AllPlaintext()
  return *all;
}

StrangerBudget& AllStrangers() {
  static auto* const all = new StrangerBudget;  // as AllPlaintext()
  return *all;
}

GuardedCallers& AllCallers() {
  static auto* const all = new GuardedCallers;  // as AllPlaintext()
  return *all;
}

// The guard of a connection, and its part of what all hold.
class GuardedConnection {
 public:
  // `caller` is nullptr if it is never known. `shares`: what the connection shares once it is.
  GuardedConnection(GuardedCallers::Caller caller, Http2Guard::Shares shares)
      : guard_(Http2Limits(), &AllStrangers()), caller_(std::move(caller)), shares_(shares) {}
  ~GuardedConnection() { Forget(); }
  GuardedConnection(const GuardedConnection&) = delete;
  GuardedConnection& operator=(const GuardedConnection&) = delete;

  const char* reason() const { return guard_.reason(); }
  bool Read(const void* data, size_t size, int64_t now_ns) {
    if (caller_ != nullptr && caller_->is_known.load()) {
      guard_.Know(shares_);
      caller_ = nullptr;
    }
    const bool may_go_on = guard_.Read(data, size, now_ns) && Count();
    if (caller_ != nullptr && guard_.has_called()) caller_->has_called.store(true);
    // gRPC does not say when it has forgotten a connection without TLS.
    if (shares_ == Http2Guard::Shares::kCalls) guard_.GiveBackCalls();
    return may_go_on;
  }
  // The connection has ended.
  void Forget() {
    guard_.GiveBackCalls();
    if (counted_ > 0) AllHeld().Remove(&guard_, counted_);
    counted_ = 0;
  }

 private:
  bool Count() {
    const size_t held = guard_.held() > kMuchHeld ? guard_.held() : 0;
    if (held < counted_) AllHeld().Remove(&guard_, counted_ - held);
    const bool has_room = held <= counted_ || AllHeld().Add(&guard_, held - counted_);
    if (has_room) counted_ = held;
    return has_room || guard_.Refuse("too much of unfinished messages");
  }

  Http2Guard guard_;
  GuardedCallers::Caller caller_;  // nullptr once the guard knows it
  const Http2Guard::Shares shares_;
  size_t counted_ = 0;
};

std::atomic<uint64_t> ended{0};
std::atomic<const char*> newest_reason{""};

// Shows the guard what was read. False if the connection has just ended, or had ended before.
bool Show(GuardedConnection* guard, const void* data, size_t size) {
  const bool had_ended = guard->reason() != nullptr;
  if (guard->Read(data, size, SteadyNs())) return true;
  if (!had_ended) {
    newest_reason.store(guard->reason());
    ended.fetch_add(1);
  }
  return false;
}

uint64_t SocketInodeOf(int fd) {
  struct stat about;
  return fstat(fd, &about) == 0 ? about.st_ino : 0;
}

// The guards of connections without TLS, by descriptor. The thread that closes the socket does not
// report it, so the kernel's number of the socket shows whether the descriptor is still the same.
class PlaintextGuards {
 public:
  void Add(int fd, uint64_t inode, GuardedCallers::Caller caller) {
    const MutexLock lock(mutex_);
    guards_[fd] = std::make_shared<Guarded>(inode, std::move(caller));
    count_.store(guards_.size());
  }

  // nullptr if nothing watches this descriptor.
  std::shared_ptr<GuardedConnection> Find(int fd) {
    if (count_.load() == 0) return nullptr;
    const MutexLock lock(mutex_);
    const auto at = guards_.find(fd);
    if (at == guards_.end()) return nullptr;
    if (at->second->inode != SocketInodeOf(fd)) {
      guards_.erase(at);
      count_.store(guards_.size());
      return nullptr;
    }
    return {at->second, &at->second->guard};
  }

 private:
  struct Guarded {
    Guarded(uint64_t of, GuardedCallers::Caller caller)
        : inode(of), guard(std::move(caller), Http2Guard::Shares::kCalls) {}
    const uint64_t inode;
    GuardedConnection guard;  // one thread reads a connection at a time
  };

  std::atomic<size_t> count_{0};  // without the lock: a daemon with TLS has none
  Mutex mutex_;
  std::unordered_map<int, std::shared_ptr<Guarded>> guards_ ABSL_GUARDED_BY(mutex_);
};

PlaintextGuards& AllPlaintext() {
  static auto* const all = new PlaintextGuards;  // gRPC's threads may outlive main()
  return *all;
}

void ForgetGuard(void*, void* guard, CRYPTO_EX_DATA*, int, long, void*) {
  delete static_cast<GuardedConnection*>(guard);
}

int GuardIndex() {
  static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, &ForgetGuard);
  return index;
}

GuardedCallers::Caller CallerOf(const SSL* ssl) {
  TlsRandom random = {};
  const size_t size = SSL_get_client_random(ssl, random.data(), random.size());
  return size == random.size() ? AllCallers().Find(random) : nullptr;
}

GuardedConnection* GuardOf(SSL* ssl) {
  if (SSL_is_server(ssl) != 1) return nullptr;
  auto* guard = static_cast<GuardedConnection*>(SSL_get_ex_data(ssl, GuardIndex()));
  if (guard != nullptr) return guard;
  auto made = std::make_unique<GuardedConnection>(CallerOf(ssl), Http2Guard::Shares::kNothing);
  guard = made.get();
  if (SSL_set_ex_data(ssl, GuardIndex(), guard) == 1) made.release();
  return made == nullptr ? guard : nullptr;
}

// Calls `show(data, size)` with each part of the message, until it returns false.
template <typename ShowPart>
bool ShowParts(const msghdr& message, size_t size, ShowPart show) {
  for (size_t i = 0; i < message.msg_iovlen && size > 0; ++i) {
    const size_t part = std::min(message.msg_iov[i].iov_len, size);
    if (!show(message.msg_iov[i].iov_base, part)) return false;
    size -= part;
  }
  return true;
}

void ShowHello(int fd, const msghdr& message, size_t size) {
  if (!AllCallers().AwaitsHellos()) return;
  const uint64_t inode = SocketInodeOf(fd);
  ShowParts(message, size, [fd, inode](const void* data, size_t part) {
    AllCallers().Read(fd, inode, static_cast<const uint8_t*>(data), part);
    return true;
  });
}

}  // namespace

void GuardConnection(int fd, bool is_tls) {
  const uint64_t inode = SocketInodeOf(fd);
  GuardedCallers::Caller caller = AllCallers().Add(fd, inode, is_tls);
  if (!is_tls) AllPlaintext().Add(fd, inode, std::move(caller));
}

void AdmitGuarded(int fd, uint64_t inode) { AllCallers().Admit(fd, inode); }

bool HasCalledGuarded(int fd, uint64_t inode) { return AllCallers().HasCalled(fd, inode); }

void EndGuarded(int fd, uint64_t inode) { AllCallers().End(fd, inode); }

GuardedEnds EndedByGuard() { return {ended.load(), newest_reason.load()}; }

namespace {

ssize_t GuardedReceive(int fd, msghdr* message, int flags) {
  const ssize_t size = syscall(SYS_recvmsg, fd, message, flags);
  if ((flags & (MSG_ERRQUEUE | MSG_PEEK)) != 0) return size;
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return size;
  const int error = errno;
  if (size > 0) ShowHello(fd, *message, static_cast<size_t>(size));
  const std::shared_ptr<GuardedConnection> guard = AllPlaintext().Find(fd);
  if (size <= 0 && guard != nullptr) guard->Forget();  // the client has closed it
  errno = error;
  if (size <= 0 || guard == nullptr) return size;
  const bool may_go_on =
      ShowParts(*message, static_cast<size_t>(size),
                [&guard](const void* data, size_t part) { return Show(guard.get(), data, part); });
  if (may_go_on) return size;
  errno = ECONNRESET;
  return -1;
}

int GuardedRead(SSL* ssl, void* buffer, int room) {
  const int size = RealRead()(ssl, buffer, room);
  if (size <= 0) return size;
  GuardedConnection* const guard = GuardOf(ssl);
  if (guard == nullptr || Show(guard, buffer, static_cast<size_t>(size))) return size;
  ERR_raise_data(ERR_LIB_SSL, SSL_R_UNEXPECTED_MESSAGE, "%s", guard->reason());
  return -1;
}

}  // namespace
}  // namespace rollcall

extern "C" ssize_t ROLLCALL_GUARDED(recvmsg)(int fd, msghdr* message, int flags) {
  return rollcall::GuardedReceive(fd, message, flags);
}

extern "C" int ROLLCALL_GUARDED(SSL_read)(SSL* ssl, void* buffer, int room) {
  return rollcall::GuardedRead(ssl, buffer, room);
}
