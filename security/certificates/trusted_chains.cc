// SPDX-License-Identifier: Apache-2.0
#include "security/certificates/trusted_chains.h"

#include "base/digest/digest.h"
#include "security/certificates/certificate.h"

namespace rollcall {
namespace {

constexpr size_t kMostRemembered = 65'536;
// An authority may expire meanwhile.
constexpr int64_t kAnswerS = 600;

}  // namespace

bool TrustedChains::IsTrusted(std::string_view chain_pem, const std::string& ca_pem,
                              int64_t now_s) {
  const std::string digest = Sha256({chain_pem.data(), chain_pem.size()});
  {
    const MutexLock lock(mutex_);
    if (ca_pem_ != ca_pem) answers_.clear();
    ca_pem_ = ca_pem;
    const auto known = answers_.find(digest);
    if (known != answers_.end() && now_s - known->second.given_s < kAnswerS) {
      return known->second.is_trusted;
    }
  }
  const bool is_trusted = CheckClientChain(chain_pem, ca_pem, now_s).ok();
  const MutexLock lock(mutex_);
  if (ca_pem_ != ca_pem) return is_trusted;
  if (answers_.size() >= kMostRemembered) answers_.clear();
  answers_[digest] = {is_trusted, now_s};
  return is_trusted;
}

}  // namespace rollcall
