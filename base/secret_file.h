// SPDX-License-Identifier: Apache-2.0
// Checks who may read a file with a secret: a private key, or a token. One rule for all such files,
// of the daemon and of its clients.
//
//   the owner       always
//   the group       if the file belongs to root: ssl-cert of Debian, fsGroup of Kubernetes
//   everybody else  never
//
// A volume of Kubernetes is an exception: only the pod sees it, and its files are readable for all
// unless a user changes that.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/watched_file.h"

namespace rollcall {

// Checks the file as it was when its content was read. `secret`: "key" or "token". An error names
// who can read or write it, and what to type.
absl::Status CheckSecretFile(const WatchedFile& file, absl::string_view secret);

// The secret in a file that is read once, without white space around it.
absl::StatusOr<std::string> ReadSecretFile(const std::string& path, absl::string_view secret);

}  // namespace rollcall
