// SPDX-License-Identifier: Apache-2.0
// Users with bcrypt hashes of their passwords, as in web.yml of Prometheus's exporters.
//
// Thread-safe. A check takes about a tenth of a second, the same for a user that does not exist. A
// password that was right is remembered (as a digest) together with the network that it came from,
// so the next check for that network costs nothing.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "base/mutex.h"

namespace rollcall {

// Whether this is a bcrypt hash that can be checked in time ("$2y$10$…").
absl::Status CheckPasswordHash(const std::string& hash);

class Passwords {
 public:
  static constexpr size_t kMostRemembered = 256;  // a further one displaces the one unused longest

  // `hashes`: by name of the user. Each has passed CheckPasswordHash().
  explicit Passwords(std::map<std::string, std::string> hashes);

  bool empty() const { return hashes_.empty(); }
  // Whether this password has come from this network before, and was right: then Check() succeeds
  // at once. `network` is any text, as of NetworkOf(). Another network learns nothing here: a
  // client that guesses there must wait for Check().
  bool IsRemembered(const std::string& user, const std::string& password,
                    const std::string& network) const;
  bool Check(const std::string& user, const std::string& password, const std::string& network);
  // Changes when the user's hash changes. Empty if there is no such user.
  std::string CredentialOf(const std::string& user) const;

 private:
  std::string DigestOf(const std::string& user, const std::string& password,
                       const std::string& network) const;
  void Remember(const std::string& digest);

  const std::map<std::string, std::string> hashes_;
  std::string stranger_hash_;  // for users that do not exist: of the same cost
  mutable Mutex mutex_;
  // Digests, the last used one at the end.
  std::deque<std::string> remembered_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rollcall
