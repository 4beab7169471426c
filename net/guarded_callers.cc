// SPDX-License-Identifier: Apache-2.0
#include "net/guarded_callers.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace rollcall {

bool ClientHello::Read(const uint8_t* at, size_t size) {
  const size_t taken = std::min(size, bytes_.size() - size_);
  std::memcpy(bytes_.data() + size_, at, taken);
  size_ += taken;
  return size_ == bytes_.size();
}

std::optional<TlsRandom> ClientHello::random() const {
  constexpr uint8_t kHandshakeRecord = 22, kClientHello = 1;
  constexpr size_t kMessageAt = 5;
  const bool is_hello =
      size_ == bytes_.size() && bytes_[0] == kHandshakeRecord && bytes_[kMessageAt] == kClientHello;
  if (!is_hello) return std::nullopt;
  TlsRandom random;
  std::copy(bytes_.begin() + kRandomAt, bytes_.end(), random.begin());
  return random;
}

GuardedCallers::Caller GuardedCallers::Add(int fd, uint64_t inode, bool is_tls) {
  const MutexLock lock(mutex_);
  Forget(fd);
  auto caller = std::make_shared<GuardedCaller>();
  connections_[fd] = {inode, caller, std::nullopt};
  if (is_tls) {
    hellos_[fd] = ClientHello();
    hellos_count_.store(hellos_.size());
  }
  return caller;
}

void GuardedCallers::Admit(int fd, uint64_t inode) {
  const MutexLock lock(mutex_);
  const Connection* const connection = FindConnection(fd, inode);
  if (connection != nullptr) connection->caller->is_known.store(true);
}

void GuardedCallers::End(int fd, uint64_t inode) {
  const MutexLock lock(mutex_);
  if (FindConnection(fd, inode) != nullptr) Forget(fd);
}

bool GuardedCallers::HasCalled(int fd, uint64_t inode) const {
  const MutexLock lock(mutex_);
  const Connection* const connection = FindConnection(fd, inode);
  return connection != nullptr && connection->caller->has_called.load();
}

void GuardedCallers::Read(int fd, uint64_t inode, const uint8_t* at, size_t size) {
  const MutexLock lock(mutex_);
  const auto hello = hellos_.find(fd);
  if (hello == hellos_.end()) return;
  Connection& connection = connections_.at(fd);
  if (connection.inode != inode) return Forget(fd);
  if (!hello->second.Read(at, size)) return;
  connection.random = hello->second.random();
  if (connection.random.has_value()) by_random_[*connection.random] = fd;
  ForgetHello(fd);
}

GuardedCallers::Caller GuardedCallers::Find(const TlsRandom& random) const {
  const MutexLock lock(mutex_);
  const auto at = by_random_.find(random);
  return at == by_random_.end() ? nullptr : connections_.at(at->second).caller;
}

const GuardedCallers::Connection* GuardedCallers::FindConnection(int fd, uint64_t inode) const {
  const auto at = connections_.find(fd);
  return at == connections_.end() || at->second.inode != inode ? nullptr : &at->second;
}

void GuardedCallers::Forget(int fd) {
  ForgetHello(fd);
  const auto at = connections_.find(fd);
  if (at == connections_.end()) return;
  if (at->second.random.has_value()) {
    const auto random = by_random_.find(*at->second.random);
    if (random != by_random_.end() && random->second == fd) by_random_.erase(random);
  }
  connections_.erase(at);
}

void GuardedCallers::ForgetHello(int fd) {
  hellos_.erase(fd);
  hellos_count_.store(hellos_.size());
}

}  // namespace rollcall
