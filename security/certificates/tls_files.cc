// SPDX-License-Identifier: Apache-2.0
#include "security/certificates/tls_files.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/secret_file.h"

namespace rollcall {
namespace {

constexpr int64_t kDayS = 86'400;
// Tools renew a certificate in the last third of its life at the latest. Less is left: report it.
constexpr int64_t kSoonFraction = 5;
constexpr int64_t kSoonS = 14 * kDayS;
// A renewal may write its files one after the other, within this time.
constexpr int64_t kRenewalS = 5;

absl::Status In(const std::string& files, const absl::Status& status) {
  return status.ok() ? status
                     : absl::Status(status.code(), absl::StrCat(files, ": ", status.message()));
}

// The first error.
absl::Status Both(absl::Status first, absl::Status second) { return first.ok() ? second : first; }

}  // namespace

TlsFiles::Source::Source(const std::string& path) {
  if (!path.empty()) file.emplace(path);
}

absl::Status TlsFiles::Source::Read() {
  if (!file.has_value()) return absl::OkStatus();
  absl::StatusOr<std::optional<std::string>> content = file->ReadIfChanged();
  if (!content.ok()) return content.status();
  if (content->has_value()) latest = **std::move(content);
  return absl::OkStatus();
}

TlsFiles::TlsFiles(TlsPaths paths, CertificateUse use)
    : paths_(std::move(paths)),
      use_(use),
      certificate_(paths_.certificate),
      key_(paths_.key),
      authorities_(paths_.authorities),
      revocations_(paths_.revocations) {}

absl::Status TlsFiles::ReadAll() {
  absl::Status status = certificate_.Read();
  for (Source* source : {&key_, &authorities_, &revocations_}) {
    status = Both(status, source->Read());
  }
  return status;
}

// A pair whose time has not come yet is judged again each time, hence by content and not by change.
absl::Status TlsFiles::TakePair(int64_t now_s, TlsContents* contents) {
  if (key_.file.has_value()) {
    if (absl::Status secret = CheckSecretFile(*key_.file, "key"); !secret.ok()) return secret;
  }
  if (certificate_.latest == contents->certificate_pem && key_.latest == contents->key_pem) {
    return absl::OkStatus();
  }
  const absl::Status status = CheckPair(certificate_.latest, key_.latest, "", use_, now_s);
  if (!status.ok()) return In(absl::StrCat(paths_.certificate, ", ", paths_.key), status);
  contents->certificate_pem = certificate_.latest;
  contents->key_pem = key_.latest;
  return absl::OkStatus();
}

absl::Status TlsFiles::TakeAuthorities(int64_t now_s, TlsContents* contents) {
  if (authorities_.latest == contents->ca_pem) return absl::OkStatus();
  const absl::Status status = CheckAuthorities(authorities_.latest, now_s);
  if (!status.ok()) return In(paths_.authorities, status);
  contents->ca_pem = authorities_.latest;
  return absl::OkStatus();
}

absl::Status TlsFiles::TakeRevocations(TlsContents* contents) {
  if (!revocations_.file.has_value()) return absl::OkStatus();
  const std::string wanted = revocations_.latest + contents->ca_pem;
  if (wanted == revocations_taken_) return absl::OkStatus();
  absl::StatusOr<RevocationList> list =
      RevocationList::Parse(revocations_.latest, contents->ca_pem);
  if (!list.ok()) return In(paths_.revocations, list.status());
  if (list->IsOlderThan(contents->revocations)) {
    return absl::InvalidArgumentError(
        absl::StrCat(paths_.revocations,
                     " is older than the list in use: it may forget what has "
                     "been revoked since. A restart takes it"));
  }
  if (list->Forgets(contents->revocations)) {
    return absl::InvalidArgumentError(absl::StrCat(
        paths_.revocations, " lacks the list of ",
        absl::StrJoin(list->AuthoritiesWithoutList(), "; "),
        ", and the list in use has one: it would forget what that authority has revoked. A restart "
        "takes it"));
  }
  if (const auto without = list->AuthoritiesWithoutList(); !without.empty()) {
    news_.push_back(absl::StrCat(paths_.revocations, " has no list of ",
                                 absl::StrJoin(without, "; "),
                                 ": nothing that it signed is revoked"));
  }
  contents->revocations = *std::move(list);
  revocations_taken_ = wanted;
  return absl::OkStatus();
}

absl::Status TlsFiles::Publish(const TlsContents& contents, bool is_new_certificate) {
  absl::Status status;
  if (!contents.certificate_pem.empty()) {
    status = identity_file_.Replace(contents.certificate_pem + "\n" + contents.key_pem);
  }
  if (status.ok() && !contents.ca_pem.empty()) status = authorities_file_.Replace(contents.ca_pem);
  if (!status.ok()) return status;
  const absl::StatusOr<CertificateFacts> facts = ParseCertificate(contents.certificate_pem);
  if (facts.ok()) issued_s_ = facts->not_before_s;
  if (facts.ok() && is_new_certificate) {
    news_.push_back(absl::StrCat("uses the certificate of ", paths_.certificate, ", valid until ",
                                 DateOf(facts->not_after_s)));
  }
  const MutexLock lock(mutex_);
  if (current_ != nullptr && current_->ca_pem != contents.ca_pem) {
    news_.push_back(absl::StrCat("trusts the authorities of ", paths_.authorities,
                                 " as they are now; the file has changed"));
  }
  current_ = std::make_shared<const TlsContents>(contents);
  expires_s_ = facts.ok() ? facts->not_after_s : 0;
  identity_path_ = identity_file_.path();
  authorities_path_ = authorities_file_.path();
  return absl::OkStatus();
}

absl::Status TlsFiles::Poll(int64_t now_s) {
  absl::Status status = ReadAll();
  const std::shared_ptr<const TlsContents> current = Current();
  TlsContents contents = current != nullptr ? *current : TlsContents();
  const std::string list_before = revocations_taken_;
  const TlsContents before = contents;
  // Each by itself: a bad list of authorities does not delay a renewed certificate.
  status = Both(status, paths_.certificate.empty() ? absl::OkStatus() : TakePair(now_s, &contents));
  status = Both(status,
                paths_.authorities.empty() ? absl::OkStatus() : TakeAuthorities(now_s, &contents));
  status = Both(status, TakeRevocations(&contents));
  const bool new_pair =
      contents.certificate_pem != before.certificate_pem || contents.key_pem != before.key_pem;
  const bool changed =
      new_pair || contents.ca_pem != before.ca_pem || revocations_taken_ != list_before;
  const bool first = current == nullptr;
  // The first time all must be good, or there is nothing to fall back to.
  const bool is_due = first ? status.ok() : changed;
  const absl::Status published = is_due ? Publish(contents, new_pair) : absl::OkStatus();
  status = Both(status, published);
  // What is not in use is taken again at the next call, although its file stays the same.
  if ((first && !status.ok()) || !published.ok()) revocations_taken_ = list_before;
  SayProblem(status, now_s);
  WarnOfExpiry(now_s);
  return status;
}

void TlsFiles::AddMessage(RepeatedMessage* message, const std::string& text, int64_t now_s) {
  if (message->IsDue(text, now_s)) messages_.push_back(text);
}

void TlsFiles::SayProblem(const absl::Status& status, int64_t now_s) {
  if (status.ok()) {
    problem_since_s_.reset();
    AddMessage(&problem_, "", now_s);
    return;
  }
  if (!problem_since_s_.has_value()) problem_since_s_ = now_s;
  const bool in_use = Current() != nullptr;
  if (in_use && now_s - *problem_since_s_ < kRenewalS) return;
  AddMessage(&problem_,
             absl::StrCat(status.message(), in_use ? " (connections use the previous files)" : ""),
             now_s);
}

void TlsFiles::WarnOfExpiry(int64_t now_s) {
  const std::shared_ptr<const TlsContents> current = Current();
  if (current == nullptr) return;
  std::string text;
  if (const int64_t until_s = expires_s(); until_s > 0) {
    const int64_t soon_s = std::min(kSoonS, (until_s - issued_s_) / kSoonFraction);
    if (now_s > until_s) {
      text = absl::StrCat("the certificate of ", paths_.certificate, " expired on ",
                          DateOf(until_s), "; others refuse it. Renew it");
    } else if (now_s > until_s - soon_s) {
      text = absl::StrCat("the certificate of ", paths_.certificate, " expires on ",
                          DateOf(until_s), "; renew it");
    }
  }
  AddMessage(&expiry_, text, now_s);
  const int64_t list_until_s = current->revocations.expires_s();
  AddMessage(
      &list_expiry_,
      list_until_s == 0 || now_s <= list_until_s
          ? ""
          : absl::StrCat("the revocation list ", paths_.revocations, " expired on ",
                         DateOf(list_until_s),
                         "; what it revokes stays revoked, what was revoked later is unknown"),
      now_s);
}

std::vector<std::string> TlsFiles::TakeMessages() { return std::exchange(messages_, {}); }
std::vector<std::string> TlsFiles::TakeNews() { return std::exchange(news_, {}); }

std::shared_ptr<const TlsContents> TlsFiles::Current() const {
  const MutexLock lock(mutex_);
  return current_;
}

int64_t TlsFiles::expires_s() const {
  const MutexLock lock(mutex_);
  return expires_s_;
}

std::string TlsFiles::identity_path() const {
  const MutexLock lock(mutex_);
  return identity_path_;
}

std::string TlsFiles::authorities_path() const {
  const MutexLock lock(mutex_);
  return authorities_path_;
}

}  // namespace rollcall
