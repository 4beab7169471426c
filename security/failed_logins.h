// SPDX-License-Identifier: Apache-2.0
// Counts the failed logins of each address, so that passwords cannot be guessed and the log does
// not fill.
//
// Thread-safe. Time is an argument, in nanoseconds of any clock that does not go back.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/mutex.h"

namespace rollcall {

// The part of a peer ("ipv4:10.0.0.1:41922", as in Presented) that one caller cannot vary: the
// address, of IPv6 the network of 64 bits, and of loopback all of it.
std::string NetworkOf(std::string_view peer);

class FailedLogins {
 public:
  struct Limits {
    int failures = 10;  // within `window_ns`
    int64_t window_ns = 60'000'000'000;
    size_t addresses = 4096;  // that are remembered; a new one displaces the oldest
  };

  FailedLogins() : FailedLogins(Limits()) {}
  explicit FailedLogins(const Limits& limits) : limits_(limits) {}

  // Seconds until this peer may try again; 0 means now.
  int BlockedFor(std::string_view peer, int64_t now_ns) const;
  // Counts an attempt before its result is known, so that attempts at one time count, too. Returns
  // what BlockedFor() does, and then counts nothing.
  int Begin(std::string_view peer, int64_t now_ns);
  // Takes back what Begin() counted.
  void Succeeded(std::string_view peer, int64_t now_ns);
  // Whether to log a refusal of this peer: at most once in each window.
  bool ShouldLog(std::string_view peer, int64_t now_ns);

 private:
  struct Entry {
    int failures = 0;
    int64_t since_ns = 0;  // start of the window
    bool is_logged = false;
  };
  bool IsOver(const Entry& entry, int64_t now_ns) const;
  Entry* Use(std::string_view peer, int64_t now_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Limits limits_;
  mutable Mutex mutex_;
  std::map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);  // by network
};

}  // namespace rollcall
