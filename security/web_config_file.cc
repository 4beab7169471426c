// SPDX-License-Identifier: Apache-2.0
#include "security/web_config_file.h"

#include "absl/strings/str_cat.h"
#include "base/secret_file.h"

namespace rollcall {
namespace {

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

}  // namespace

absl::StatusOr<std::string> WebConfigFile::ReadText(const std::string& path, bool* has_changed) {
  if (path.empty()) return std::string();
  Text& text = texts_[path];
  if (text.file == nullptr) text.file = std::make_unique<WatchedFile>(path);
  auto content = text.file->ReadIfChanged();
  if (!content.ok()) return content.status();
  if (content->has_value()) {
    text.content = std::move(**content);
    *has_changed = true;
  }
  return text.content;
}

absl::StatusOr<std::shared_ptr<const TlsContext>> WebConfigFile::MakeTls(const WebConfig& config,
                                                                         int64_t now_s,
                                                                         bool* has_changed) {
  TlsSettings settings;
  for (const auto& [path, text] : {std::pair(&config.cert_file, &settings.certificate_pem),
                                   std::pair(&config.key_file, &settings.key_pem),
                                   std::pair(&config.client_ca_file, &settings.client_ca_pem)}) {
    auto content = ReadText(*path, has_changed);
    if (!content.ok()) return content.status();
    *text = std::move(*content);
  }
  if (!config.key_file.empty()) {
    const absl::Status secret = CheckSecretFile(*texts_.at(config.key_file).file, "key");
    if (!secret.ok()) return secret;
  }
  const auto current = this->current();
  if (!*has_changed && is_applied_ && current != nullptr) return current->tls;
  settings.requires_client_certificate = config.requires_client_certificate;
  settings.client_sans = config.client_sans;
  settings.needs_tls13 = config.needs_tls13;
  auto made = TlsContext::Make(settings);
  if (!made.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(config.cert_file, ": ", std::string(made.status().message())));
  }
  if ((*made)->expires_s() <= now_s) {
    return absl::InvalidArgumentError(absl::StrCat(config.cert_file, " has expired; renew it"));
  }
  return made;
}

absl::Status WebConfigFile::Apply(int64_t now_s) {
  bool has_changed = false;
  const auto text = ReadText(path_, &has_changed);
  if (!text.ok()) return text.status();
  const auto config = ParseWebConfig(*text, FolderOf(path_));
  if (!config.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ": ", std::string(config.status().message())));
  }
  auto state = std::make_shared<WebState>();
  if (config->has_tls) {
    auto tls = MakeTls(*config, now_s, &has_changed);
    if (!tls.ok()) return tls.status();
    state->tls = std::move(*tls);
  }
  if (!has_changed && is_applied_) return absl::OkStatus();
  const auto before = current();
  if (before != nullptr && (before->tls == nullptr) != (state->tls == nullptr)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ": TLS begins and ends with a restart only; restart the daemon"));
  }
  state->passwords = std::make_shared<Passwords>(config->users);
  state->headers = config->headers;
  const MutexLock lock(mutex_);
  current_ = std::move(state);
  return absl::OkStatus();
}

absl::Status WebConfigFile::Poll(int64_t now_s) {
  absl::Status status = Apply(now_s);
  is_applied_ = status.ok();
  return status;
}

std::shared_ptr<const WebState> WebConfigFile::current() const {
  const MutexLock lock(mutex_);
  return current_;
}

}  // namespace rollcall
