// SPDX-License-Identifier: Apache-2.0
#include "security/revocation.h"

#include <algorithm>
#include <ctime>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "security/digest.h"
#include "security/openssl_types.h"
#include "security/pem.h"

namespace rollcall {
namespace {

constexpr size_t kMostAnswers = 65'536;  // to remember

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

std::string IssuerOf(const X509_CRL* list) {
  const BioPointer text(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(text.get(), X509_CRL_get_issuer(list), 0, XN_FLAG_RFC2253);
  return TextOf(text.get());
}

int64_t ExpiryOf(const X509_CRL* list) {
  std::tm parts = {};
  const ASN1_TIME* next = X509_CRL_get0_nextUpdate(list);
  return next != nullptr && ASN1_TIME_to_tm(next, &parts) == 1 ? timegm(&parts) : 0;
}

// Whether one authority made `a` before `b`.
bool IsOlder(const X509_CRL* a, const X509_CRL* b) {
  return X509_NAME_cmp(X509_CRL_get_issuer(a), X509_CRL_get_issuer(b)) == 0 &&
         ASN1_TIME_compare(X509_CRL_get0_lastUpdate(a), X509_CRL_get0_lastUpdate(b)) == -1;
}

bool Revokes(X509_CRL* list, X509* certificate) {
  X509_REVOKED* entry = nullptr;
  return X509_NAME_cmp(X509_CRL_get_issuer(list), X509_get_issuer_name(certificate)) == 0 &&
         X509_CRL_get0_by_cert(list, &entry, certificate) == 1;
}

}  // namespace

struct RevocationList::Lists {
  explicit Lists(std::vector<CrlPointer> lists) : all(std::move(lists)) {}

  bool Revoke(std::string_view certificate_pem) const {
    const absl::StatusOr<std::vector<CertificatePointer>> chain = ReadCertificates(certificate_pem);
    if (!chain.ok()) return true;
    return std::any_of(all.begin(), all.end(), [&chain](const CrlPointer& list) {
      return Revokes(list.get(), chain->front().get());
    });
  }

  const std::vector<CrlPointer> all;
  // The daemon asks about each connected agent every few seconds, and reading a certificate takes a
  // hundred times as long as a digest of it. By digest.
  mutable absl::Mutex mutex;
  mutable std::unordered_map<std::string, bool> answers ABSL_GUARDED_BY(mutex);
};

absl::StatusOr<RevocationList> RevocationList::Parse(std::string_view crl_pem,
                                                     std::string_view ca_pem) {
  absl::StatusOr<std::vector<CrlPointer>> lists = ReadCrls(crl_pem);
  if (!lists.ok()) return lists.status();
  const absl::StatusOr<std::vector<CertificatePointer>> authorities = ReadCertificates(ca_pem);
  if (!authorities.ok()) return authorities.status();
  RevocationList result;
  for (const CrlPointer& list : *lists) {
    if (!Signed(list.get(), *authorities)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "no authority that this process believes has signed the revocation list of ", IssuerOf(list.get())));
    }
    const int64_t expires_s = ExpiryOf(list.get());
    if (expires_s > 0 && (result.expires_s_ == 0 || expires_s < result.expires_s_)) {
      result.expires_s_ = expires_s;
    }
  }
  result.lists_ = std::make_shared<Lists>(*std::move(lists));
  return result;
}

bool RevocationList::IsOlderThan(const RevocationList& other) const {
  if (lists_ == nullptr || other.lists_ == nullptr) return false;
  return std::any_of(lists_->all.begin(), lists_->all.end(), [&other](const CrlPointer& list) {
    return std::any_of(other.lists_->all.begin(), other.lists_->all.end(),
                       [&list](const CrlPointer& before) {
                         return IsOlder(list.get(), before.get());
                       });
  });
}

bool RevocationList::IsRevoked(std::string_view certificate_pem) const {
  if (lists_ == nullptr) return false;
  const std::string digest = Sha256({certificate_pem.data(), certificate_pem.size()});
  {
    const absl::MutexLock lock(&lists_->mutex);
    const auto known = lists_->answers.find(digest);
    if (known != lists_->answers.end()) return known->second;
  }
  const bool is_revoked = lists_->Revoke(certificate_pem);
  const absl::MutexLock lock(&lists_->mutex);
  if (lists_->answers.size() >= kMostAnswers) lists_->answers.clear();
  lists_->answers[digest] = is_revoked;
  return is_revoked;
}

}  // namespace rollcall
