// SPDX-License-Identifier: Apache-2.0
#include "security/passwords.h"

#include <crypt.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/digest/digest.h"

namespace rollcall {
namespace {

constexpr size_t kHashSize = 60;
constexpr size_t kCostAt = 4;  // "$2y$10$": two digits
constexpr size_t kSaltAt = 7;
constexpr int kHighestCost = 14;  // takes more than a second
// bcrypt reads no further.
constexpr size_t kLongestPassword = 72;
constexpr char kAlphabet[] = "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

int CostOf(const std::string& hash) {
  return (hash[kCostAt] - '0') * 10 + (hash[kCostAt + 1] - '0');
}

bool Matches(const std::string& password, const std::string& hash) {
  // 32 KiB; a thread's stack may be small.
  const auto data = std::make_unique<crypt_data>();
  const char* made = crypt_r(password.c_str(), hash.c_str(), data.get());
  return made != nullptr && std::string(made).size() == hash.size() &&
         CRYPTO_memcmp(made, hash.data(), hash.size()) == 0;
}

}  // namespace

absl::Status CheckPasswordHash(const std::string& hash) {
  const bool has_form = hash.size() == kHashSize && hash.compare(0, 2, "$2") == 0 &&
                        (hash[2] == 'a' || hash[2] == 'b' || hash[2] == 'y') && hash[3] == '$' &&
                        hash[6] == '$' &&
                        hash.find_first_not_of(kAlphabet, kSaltAt) == std::string::npos &&
                        hash.find_first_not_of("0123456789", kCostAt) == kSaltAt - 1;
  if (!has_form) {
    return absl::InvalidArgumentError(
        "not a bcrypt hash; make one:  htpasswd -nBC 10 NAME | cut -d: -f2");
  }
  if (CostOf(hash) < 4 || CostOf(hash) > kHighestCost) {
    return absl::InvalidArgumentError(
        absl::StrCat("the cost of a bcrypt hash is 4 to ", kHighestCost, ", not ", CostOf(hash)));
  }
  return absl::OkStatus();
}

Passwords::Passwords(std::map<std::string, std::string> hashes) : hashes_(std::move(hashes)) {
  // The most expensive one, so that no name is recognised by a longer wait.
  for (const auto& [user, hash] : hashes_) {
    if (stranger_hash_.empty() || CostOf(hash) > CostOf(stranger_hash_)) stranger_hash_ = hash;
  }
}

// The zero bytes keep the fields apart. Only a password could contain one, and it comes last.
std::string Passwords::DigestOf(const std::string& user, const std::string& password,
                                const std::string& network) const {
  const auto at = hashes_.find(user);
  if (at == hashes_.end()) return "";
  const absl::string_view zero("\0", 1);
  return Sha256(absl::StrCat(user, zero, at->second, zero, network, zero, password));
}

bool Passwords::IsRemembered(const std::string& user, const std::string& password,
                             const std::string& network) const {
  const std::string digest = DigestOf(user, password, network);
  const MutexLock lock(mutex_);
  return std::find(remembered_.begin(), remembered_.end(), digest) != remembered_.end();
}

void Passwords::Remember(const std::string& digest) {
  const MutexLock lock(mutex_);
  const auto at = std::find(remembered_.begin(), remembered_.end(), digest);
  if (at != remembered_.end()) remembered_.erase(at);
  if (remembered_.size() >= kMostRemembered) remembered_.pop_front();
  remembered_.push_back(digest);
}

bool Passwords::Check(const std::string& user, const std::string& password,
                      const std::string& network) {
  if (hashes_.empty()) return false;
  if (password.size() > kLongestPassword || password.find('\0') != std::string::npos) return false;
  const auto at = hashes_.find(user);
  const bool is_right =
      IsRemembered(user, password, network) ||
      (Matches(password, at == hashes_.end() ? stranger_hash_ : at->second) && at != hashes_.end());
  if (is_right) Remember(DigestOf(user, password, network));
  return is_right;
}

std::string Passwords::CredentialOf(const std::string& user) const {
  const auto at = hashes_.find(user);
  if (at == hashes_.end()) return "";
  return absl::StrCat("password ", absl::BytesToHexString(Sha256(user + "\n" + at->second)));
}

}  // namespace rollcall
