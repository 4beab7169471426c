// SPDX-License-Identifier: Apache-2.0
#include "security/certificates/revocation.h"

#include <algorithm>
#include <ctime>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/digest/digest.h"
#include "base/mutex.h"
#include "security/certificates/openssl_types.h"
#include "security/certificates/pem.h"

namespace rollcall {
namespace {

constexpr size_t kMostAnswers = 65'536;  // to remember
// The limit of a text. A caller who sends more wants to hide one, or to keep this process busy.
constexpr size_t kLongestChain = 10;

bool Signed(X509_CRL* list, const std::vector<CertificatePointer>& authorities) {
  const bool found = std::any_of(
      authorities.begin(), authorities.end(), [list](const CertificatePointer& authority) {
        return X509_NAME_cmp(X509_CRL_get_issuer(list), X509_get_subject_name(authority.get())) ==
                   0 &&
               X509_CRL_verify(list, X509_get0_pubkey(authority.get())) == 1;
      });
  ERR_clear_error();
  return found;
}

std::string InWords(const X509_NAME* name) {
  const BioPointer text(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(text.get(), name, 0, XN_FLAG_RFC2253);
  return TextOf(text.get());
}

int64_t ExpiryOf(const X509_CRL* list) {
  std::tm parts = {};
  const ASN1_TIME* next = X509_CRL_get0_nextUpdate(list);
  return next != nullptr && ASN1_TIME_to_tm(next, &parts) == 1 ? timegm(&parts) : 0;
}

// Returns the newest list of this authority, or nullptr.
const X509_CRL* NewestOf(const X509_NAME* issuer, const std::vector<CrlPointer>& lists) {
  const X509_CRL* newest = nullptr;
  for (const CrlPointer& list : lists) {
    if (X509_NAME_cmp(X509_CRL_get_issuer(list.get()), issuer) != 0) continue;
    const bool is_newer =
        newest == nullptr || ASN1_TIME_compare(X509_CRL_get0_lastUpdate(list.get()),
                                               X509_CRL_get0_lastUpdate(newest)) == 1;
    if (is_newer) newest = list.get();
  }
  return newest;
}

bool IsOlder(const X509_CRL* a, const X509_CRL* b) {
  return ASN1_TIME_compare(X509_CRL_get0_lastUpdate(a), X509_CRL_get0_lastUpdate(b)) == -1;
}

bool HasSigned(X509* issuer, X509* certificate) {
  return X509_check_issued(issuer, certificate) == X509_V_OK &&
         X509_verify(certificate, X509_get0_pubkey(issuer)) == 1;
}

bool Revokes(X509_CRL* list, X509* certificate) {
  X509_REVOKED* entry = nullptr;
  return X509_NAME_cmp(X509_CRL_get_issuer(list), X509_get_issuer_name(certificate)) == 0 &&
         X509_CRL_get0_by_cert(list, &entry, certificate) == 1;
}

}  // namespace

struct RevocationList::Lists {
  Lists(std::vector<CrlPointer> lists, std::vector<CertificatePointer> authorities_in)
      : all(std::move(lists)), authorities(std::move(authorities_in)) {}

  bool RevokeOne(X509* certificate) const {
    return std::any_of(all.begin(), all.end(), [certificate](const CrlPointer& list) {
      return Revokes(list.get(), certificate);
    });
  }

  bool Revoke(std::string_view certificate_pem) const {
    const absl::StatusOr<std::vector<CertificatePointer>> chain = ReadCertificates(certificate_pem);
    if (!chain.ok() || chain->size() > kLongestChain) return true;
    std::vector<X509*> others;
    for (const CertificatePointer& one : *chain) others.push_back(one.get());
    for (const CertificatePointer& one : authorities) others.push_back(one.get());
    const bool is_revoked = RevokeAbove(chain->front().get(), std::move(others));
    ERR_clear_error();
    return is_revoked;
  }

  // Whether this certificate is revoked, or one of `others` above it. Looks at each once.
  bool RevokeAbove(X509* certificate, std::vector<X509*> others) const {
    std::vector<X509*> path = {certificate};
    while (!path.empty()) {
      X509* lower = path.back();
      path.pop_back();
      if (RevokeOne(lower)) return true;
      const auto above = std::partition(others.begin(), others.end(), [lower](X509* issuer) {
        return !HasSigned(issuer, lower);
      });
      path.insert(path.end(), above, others.end());
      others.erase(above, others.end());
    }
    return false;
  }

  const std::vector<CrlPointer> all;
  const std::vector<CertificatePointer> authorities;
  // The daemon asks about each connected agent every few seconds, and reading a certificate takes a
  // hundred times as long as a digest of it. By digest.
  mutable Mutex mutex;
  mutable std::unordered_map<std::string, bool> answers ABSL_GUARDED_BY(mutex);
};

absl::StatusOr<RevocationList> RevocationList::Parse(std::string_view crl_pem,
                                                     std::string_view ca_pem) {
  absl::StatusOr<std::vector<CrlPointer>> lists = ReadCrls(crl_pem);
  if (!lists.ok()) return lists.status();
  absl::StatusOr<std::vector<CertificatePointer>> authorities = ReadCertificates(ca_pem);
  if (!authorities.ok()) return authorities.status();
  RevocationList result;
  for (const CrlPointer& list : *lists) {
    if (!Signed(list.get(), *authorities)) {
      return absl::InvalidArgumentError(
          absl::StrCat("no authority that this process trusts has signed the revocation list of ",
                       InWords(X509_CRL_get_issuer(list.get())),
                       ": add the certificate of that authority, or remove its list"));
    }
    const int64_t expires_s = ExpiryOf(list.get());
    if (expires_s > 0 && (result.expires_s_ == 0 || expires_s < result.expires_s_)) {
      result.expires_s_ = expires_s;
    }
  }
  result.lists_ = std::make_shared<Lists>(*std::move(lists), *std::move(authorities));
  return result;
}

bool RevocationList::IsOlderThan(const RevocationList& other) const {
  if (lists_ == nullptr || other.lists_ == nullptr) return false;
  return std::any_of(lists_->all.begin(), lists_->all.end(), [&](const CrlPointer& list) {
    const X509_NAME* issuer = X509_CRL_get_issuer(list.get());
    const X509_CRL* before = NewestOf(issuer, other.lists_->all);
    return before != nullptr && IsOlder(NewestOf(issuer, lists_->all), before);
  });
}

bool RevocationList::Forgets(const RevocationList& other) const {
  if (lists_ == nullptr || other.lists_ == nullptr) return false;
  const std::vector<std::string> without = AuthoritiesWithoutList();
  return std::any_of(other.lists_->all.begin(), other.lists_->all.end(),
                     [&without](const CrlPointer& list) {
                       const std::string issuer = InWords(X509_CRL_get_issuer(list.get()));
                       return std::find(without.begin(), without.end(), issuer) != without.end();
                     });
}

std::vector<std::string> RevocationList::AuthoritiesWithoutList() const {
  std::vector<std::string> without;
  if (lists_ == nullptr) return without;
  for (const CertificatePointer& authority : lists_->authorities) {
    const X509_NAME* name = X509_get_subject_name(authority.get());
    if (NewestOf(name, lists_->all) == nullptr) without.push_back(InWords(name));
  }
  return without;
}

bool RevocationList::IsRevoked(std::string_view certificate_pem) const {
  if (lists_ == nullptr) return false;
  const std::string digest = Sha256({certificate_pem.data(), certificate_pem.size()});
  {
    const MutexLock lock(lists_->mutex);
    const auto known = lists_->answers.find(digest);
    if (known != lists_->answers.end()) return known->second;
  }
  const bool is_revoked = lists_->Revoke(certificate_pem);
  const MutexLock lock(lists_->mutex);
  if (lists_->answers.size() >= kMostAnswers) lists_->answers.clear();
  lists_->answers[digest] = is_revoked;
  return is_revoked;
}

}  // namespace rollcall
