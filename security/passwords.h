// SPDX-License-Identifier: Apache-2.0
// Users with bcrypt hashes of their passwords, as in web.yml of Prometheus's exporters.
//
// Thread-safe. A check takes about a tenth of a second, the same for a user that does not exist. A
// password that was right is remembered (as a digest), so the next check costs nothing.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>

#include "absl/status/status.h"

namespace rollcall {

// Whether this is a bcrypt hash that can be checked in time ("$2y$10$…").
absl::Status CheckPasswordHash(const std::string& hash);

class Passwords {
 public:
  // By name of the user. Each hash has passed CheckPasswordHash().
  explicit Passwords(std::map<std::string, std::string> hashes);

  bool empty() const { return hashes_.empty(); }
  // Whether Check() would say yes, and at once.
  bool IsRemembered(const std::string& user, const std::string& password) const;
  bool Check(const std::string& user, const std::string& password);
  // Changes when the user's hash changes. "": there is no such user.
  std::string CredentialOf(const std::string& user) const;

 private:
  std::string DigestOf(const std::string& user, const std::string& password) const;

  const std::map<std::string, std::string> hashes_;
  std::string stranger_hash_;  // for users that do not exist: of the same cost
  mutable std::mutex mutex_;
  std::set<std::string> remembered_;  // digests
};

}  // namespace rollcall
