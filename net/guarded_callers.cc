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

GuardedCallers::IsKnown GuardedCallers::Add(int fd, uint64_t inode, bool is_tls) {
  const MutexLock lock(mutex_);
  Forget(fd);
  auto is_known = std::make_shared<std::atomic<bool>>(false);
  connections_[fd] = {inode, is_known, std::nullopt};
  if (is_tls) {
    hellos_[fd] = ClientHello();
    hellos_count_.store(hellos_.size());
  }
  return is_known;
}

void GuardedCallers::Admit(int fd, uint64_t inode) {
  const MutexLock lock(mutex_);
  const auto at = connections_.find(fd);
  if (at != connections_.end() && at->second.inode == inode) at->second.is_known->store(true);
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

GuardedCallers::IsKnown GuardedCallers::Find(const TlsRandom& random) const {
  const MutexLock lock(mutex_);
  const auto at = by_random_.find(random);
  return at == by_random_.end() ? nullptr : connections_.at(at->second).is_known;
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
