// SPDX-License-Identifier: Apache-2.0
// web.yml, the file that configures TLS and users of Prometheus's exporters.
// https://github.com/prometheus/exporter-toolkit/blob/master/docs/web-configuration.md
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace rollcall {

struct WebConfig {
  bool has_tls = false;
  // Absolute, or relative to the working folder; made from paths that are relative to the file.
  std::string cert_file, key_file, client_ca_file;
  bool requires_client_certificate = false;
  bool asks_for_client_certificate = false;
  std::vector<std::string> client_sans;
  bool needs_tls13 = false;
  std::map<std::string, std::string> users;                  // bcrypt hashes by name
  std::vector<std::pair<std::string, std::string>> headers;  // of every response
};

// `folder` is where the file lies, without a "/" at the end. The error names the key that is
// unknown or wrong.
absl::StatusOr<WebConfig> ParseWebConfig(const std::string& text, const std::string& folder);

}  // namespace rollcall
