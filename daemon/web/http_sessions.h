// SPDX-License-Identifier: Apache-2.0
// The people who are logged in to the page.
//
// A session is known by a random secret, which only the browser keeps: the table has its digest.
// Thread-safe. Time is an argument, in nanoseconds of the steady clock.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "security/identity.h"

namespace rollcall {

// The name of a daemon's cookie. Browsers send a cookie to all ports of a host, and a tunnel makes
// pages of several hosts ports of one, so each daemon needs a name of its own. It stays the same
// after a restart. `host` and `port` are where the page listens.
std::string SessionCookieName(const std::string& host, int port);

class HttpSessions {
 public:
  static constexpr size_t kMostSessions = 1000;
  // Limit of one credential, so that one token cannot log out all others.
  static constexpr size_t kMostOfOne = 50;
  static constexpr int64_t kLifetimeNs = int64_t{12} * 3600 * 1'000'000'000;

  // Returns the secret, 43 letters of base64url. Where there are too many, the oldest ends.
  std::string Begin(const Identity& identity, int64_t now_ns);
  // Returns nullopt for an unknown or expired session.
  std::optional<Identity> Find(const std::string& secret, int64_t now_ns) const;
  void End(const std::string& secret);
  size_t size() const;

 private:
  struct Session {
    Identity identity;
    int64_t begun_ns = 0;
  };

  void MakeRoom(const std::string& credential, int64_t now_ns)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::map<std::string, Session> sessions_ ABSL_GUARDED_BY(mutex_);  // by the digest of the secret
};

}  // namespace rollcall
