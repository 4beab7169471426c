// SPDX-License-Identifier: Apache-2.0
#include "daemon/web/http_sessions.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "base/digest/digest.h"

namespace rollcall {
namespace {

constexpr size_t kSecretBytes = 32;

std::string NewSecret() {
  const std::optional<std::string> bytes = RandomBytes(kSecretBytes);
  if (!bytes.has_value()) std::abort();  // without randomness, no user may log in
  return ToBase64Url(*bytes);
}

}  // namespace

std::string SessionCookieName(const std::string& host, int port) {
  constexpr size_t kDigits = 8;
  return absl::StrCat("rollcall_session_",
                      Sha256Hex(absl::StrCat(host, ":", port)).substr(0, kDigits));
}

// Ends what has expired, and then the oldest session, of this credential if it has too many.
void HttpSessions::MakeRoom(const std::string& credential, int64_t now_ns) {
  size_t of_one = 0;
  auto oldest = sessions_.end(), oldest_of_one = sessions_.end();
  for (auto at = sessions_.begin(); at != sessions_.end();) {
    if (now_ns - at->second.begun_ns >= kLifetimeNs) {
      at = sessions_.erase(at);
      continue;
    }
    const auto is_older = [&at, this](auto other) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return other == sessions_.end() || at->second.begun_ns < other->second.begun_ns;
    };
    if (is_older(oldest)) oldest = at;
    if (at->second.identity.credential == credential) {
      ++of_one;
      if (is_older(oldest_of_one)) oldest_of_one = at;
    }
    ++at;
  }
  if (of_one >= kMostOfOne) {
    sessions_.erase(oldest_of_one);
  } else if (sessions_.size() >= kMostSessions) {
    sessions_.erase(oldest);
  }
}

std::string HttpSessions::Begin(const Identity& identity, int64_t now_ns) {
  std::string secret = NewSecret();
  const MutexLock lock(mutex_);
  MakeRoom(identity.credential, now_ns);
  sessions_[Sha256(secret)] = {identity, now_ns};
  return secret;
}

std::optional<Identity> HttpSessions::Find(const std::string& secret, int64_t now_ns) const {
  if (secret.empty()) return std::nullopt;
  const MutexLock lock(mutex_);
  const auto at = sessions_.find(Sha256(secret));
  if (at == sessions_.end() || now_ns - at->second.begun_ns >= kLifetimeNs) return std::nullopt;
  return at->second.identity;
}

void HttpSessions::End(const std::string& secret) {
  const MutexLock lock(mutex_);
  sessions_.erase(Sha256(secret));
}

size_t HttpSessions::size() const {
  const MutexLock lock(mutex_);
  return sessions_.size();
}

}  // namespace rollcall
