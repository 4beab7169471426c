// SPDX-License-Identifier: Apache-2.0
// Whose share of the page's threads a request takes: that of its user, where an answer to the same
// credentials has shown who that is, and that of its address otherwise. So the users behind one
// reverse proxy, who share an address, do not share its turn.
//
// Remembers digests of credentials, and only those that were right. Not thread-safe: one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "net/http_types.h"

namespace rollcall {

class HttpSenders {
 public:
  // Returns a digest of the credential that a request presents; empty if it presents none.
  static std::string CredentialOf(const std::string& request, const HttpCaller& caller);

  // `credential`: of CredentialOf().
  std::string OwnerOf(const std::string& credential, const HttpCaller& caller) const;
  // An answer has shown whose credential this is; `user` is empty if the credential is wrong.
  void Learn(const std::string& credential, const std::string& user);

 private:
  static constexpr size_t kMostUsers = 4096;
  // A browser has one, a script another. A user who sends many forgets only their own.
  static constexpr size_t kMostOfUser = 16;

  void Forget(const std::string& credential);

  std::map<std::string, std::string> users_;                    // by credential
  std::map<std::string, std::deque<std::string>> credentials_;  // by user, the oldest first
};

}  // namespace rollcall
