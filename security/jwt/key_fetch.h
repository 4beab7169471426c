// SPDX-License-Identifier: Apache-2.0
// Fetches a key set over HTTPS. Blocks, at most about half a minute: call it from a thread of its
// own.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace rollcall {

struct KeyLocation {
  std::string url;         // "https://HOST[:PORT]/PATH"; http:// only of this host's loopback
  std::string ca_file;     // PEM of who signed the server's certificate; empty: the system's
  std::string token_file;  // a bearer token, read for each fetch, as of a pod, or empty
};

// Says what is wrong with the URL.
absl::Status CheckKeyUrl(const std::string& url);

// The body of an answer of status 200, at most 1 MiB. Follows no redirection: it could lead the
// token elsewhere.
absl::StatusOr<std::string> FetchKeys(const KeyLocation& location);

}  // namespace rollcall
