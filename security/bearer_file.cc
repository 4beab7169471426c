// SPDX-License-Identifier: Apache-2.0
#include "security/bearer_file.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/secret_file.h"

namespace rollcall {
namespace {

absl::Status CheckToken(const std::string& path, absl::string_view token) {
  const bool printable = std::all_of(token.begin(), token.end(), [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c));
  });
  if (!token.empty() && printable && token.size() <= BearerFile::kMaxTokenBytes) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(path, token.empty() ? " is empty" : " does not hold exactly one token",
                   "; a client's file holds one line, which `rollcall token new` prints"));
}

}  // namespace

BearerFile::BearerFile(std::string path) : file_(std::move(path)) {}

absl::StatusOr<std::string> BearerFile::Read() {
  const MutexLock lock(mutex_);
  const absl::StatusOr<std::optional<std::string>> content = file_.ReadIfChanged();
  if (content.ok() && content->has_value()) {
    const absl::string_view token = absl::StripAsciiWhitespace(**content);
    status_ = CheckSecretFile(file_, "token");
    if (status_.ok()) status_ = CheckToken(file_.path(), token);
    if (status_.ok()) token_ = std::string(token);
  }
  if (!token_.empty()) return token_;
  return content.ok() ? status_ : content.status();
}

}  // namespace rollcall
