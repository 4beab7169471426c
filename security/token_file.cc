// SPDX-License-Identifier: Apache-2.0
#include "security/token_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace rollcall {
namespace {

absl::Status CheckOwner(const WatchedFile& file) {
  if (file.owner() != 0 && file.owner() != geteuid()) {
    return absl::PermissionDeniedError(
        absl::StrCat("the token file ", file.path(), " belongs to uid ", file.owner(),
                     ", so it is ignored: chown it to root, or to the user of rollcalld"));
  }
  if ((file.mode() & (S_IWGRP | S_IWOTH)) != 0) {
    return absl::PermissionDeniedError(absl::StrCat("others may write the token file ", file.path(),
                                                    ", so it is ignored: chmod go-w ",
                                                    file.path()));
  }
  return absl::OkStatus();
}

bool SameRights(const Identity& a, const Identity& b) {
  return a.roles == b.roles && a.tenants == b.tenants && a.hosts == b.hosts;
}

absl::string_view DigestOf(const Identity& identity) {
  absl::string_view digest = identity.credential;
  return absl::ConsumePrefix(&digest, "token ") ? digest : "";
}

}  // namespace

TokenFile::TokenFile(std::string path)
    : file_(std::move(path)), entries_(std::make_shared<Entries>()) {}

absl::Status TokenFile::Poll() {
  const absl::StatusOr<std::optional<std::string>> text = file_.ReadIfChanged();
  if (!text.ok()) return text.status();
  if (text->has_value()) last_content_ = Use(**text);
  return last_content_;
}

absl::Status TokenFile::Use(const std::string& text) {
  const absl::Status owner = CheckOwner(file_);
  if (!owner.ok()) return owner;
  absl::StatusOr<Entries> entries = ParseTokens(text);
  if (!entries.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the token file ", file_.path(), ", ", entries.status().message(),
                     "; `rollcall token new` writes entries that are right"));
  }
  auto shared = std::make_shared<const Entries>(*std::move(entries));
  const MutexLock lock(mutex_);
  entries_ = std::move(shared);
  return absl::OkStatus();
}

std::shared_ptr<const TokenFile::Entries> TokenFile::entries() const {
  const MutexLock lock(mutex_);
  return entries_;
}

absl::StatusOr<Identity> TokenFile::Identify(absl::string_view token, int64_t now_s) const {
  const auto current = entries();
  const TokenEntry* entry = FindToken(*current, token);
  if (entry == nullptr || HasExpired(*entry, now_s)) {
    return absl::UnauthenticatedError(
        "the token is unknown or has expired: ask the operator of rollcalld for a new one "
        "(`rollcall token new`)");
  }
  return TokenIdentity(*entry);
}

bool TokenFile::IsStillValid(const Identity& identity, int64_t now_s) const {
  const auto current = entries();
  const absl::string_view digest = DigestOf(identity);
  const auto found =
      std::find_if(current->begin(), current->end(),
                   [digest](const TokenEntry& entry) { return entry.sha256 == digest; });
  return found != current->end() && !HasExpired(*found, now_s) &&
         SameRights(TokenIdentity(*found), identity);
}

}  // namespace rollcall
