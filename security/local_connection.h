// SPDX-License-Identifier: Apache-2.0
// Connects to a daemon on this host, and makes sure whose process it is before a byte goes there:
// any user of the host may listen on a free port of loopback, or create a file in a public folder.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace rollcall {

// The user whose daemon a client trusts without TLS.
class DaemonUser {
 public:
  // Empty means this process's user and root. "any" means every user. Else the name or number of
  // one user; a malformed one is an error that names the flag.
  static absl::StatusOr<DaemonUser> Parse(const std::string& flag);

  bool is_anybody() const { return is_anybody_; }
  bool Accepts(uid_t user) const;

 private:
  bool is_anybody_ = false;
  std::optional<uid_t> only_;
};

inline constexpr int kLocalPatienceMs = 1'000;

// A connected socket that does not block. `address` is one for which
// IsOnThisHost() holds. Of a name with several addresses, the first that belongs to an accepted
// user counts. Waits at most twice `patience_ms`, once for each step. A client that connects anew
// gives up its place among those that wait for the daemon.
//
// kUnavailable: no program listens there. kDeadlineExceeded: the daemon does not accept connections
// now, because it is busy or has too many. kPermissionDenied: the listener belongs to somebody
// else; or the kernel does not show to whom (another network or user namespace) and `has_secret`.
// The error names what to type.
absl::StatusOr<UniqueFd> ConnectOnThisHost(const std::string& address, const DaemonUser& user,
                                           bool has_secret, int patience_ms = kLocalPatienceMs);

}  // namespace rollcall
