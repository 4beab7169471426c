// SPDX-License-Identifier: Apache-2.0
#include "net/http_senders.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/digest/digest.h"
#include "base/peer_address.h"
#include "net/http_request.h"

namespace rollcall {

std::string HttpSenders::CredentialOf(const std::string& request, const HttpCaller& caller) {
  const std::string fields = CredentialFields(request);
  if (fields.empty() && caller.certificate_pem.empty()) return "";
  return Sha256(absl::StrCat(fields, "\n", caller.certificate_pem));
}

std::string HttpSenders::OwnerOf(const std::string& credential, const HttpCaller& caller) const {
  const auto at = users_.find(credential);
  // An address begins with its family.
  if (at != users_.end()) return absl::StrCat("user:", at->second);
  return std::string(PeerWithoutPort(caller.peer));
}

void HttpSenders::Learn(const std::string& credential, const std::string& user) {
  if (credential.empty()) return;
  const auto known = users_.find(credential);
  if (known != users_.end() && known->second == user) return;
  Forget(credential);
  if (user.empty() || (credentials_.count(user) == 0 && credentials_.size() >= kMostUsers)) return;
  std::deque<std::string>& own = credentials_[user];
  own.push_back(credential);
  users_[credential] = user;
  if (own.size() <= kMostOfUser) return;
  users_.erase(own.front());
  own.pop_front();
}

void HttpSenders::Forget(const std::string& credential) {
  const auto at = users_.find(credential);
  if (at == users_.end()) return;
  const auto own = credentials_.find(at->second);
  users_.erase(at);
  std::deque<std::string>& all = own->second;
  all.erase(std::remove(all.begin(), all.end(), credential), all.end());
  if (all.empty()) credentials_.erase(own);
}

}  // namespace rollcall
