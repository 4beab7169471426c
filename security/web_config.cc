// SPDX-License-Identifier: Apache-2.0
#include "security/web_config.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "security/passwords.h"

namespace rollcall {
namespace {

// How to read one key of a section.
struct Key {
  const char* name;
  absl::Status (*read)(const YAML::Node& value, const std::string& folder, WebConfig* config);
};

absl::Status WrongConfig(const std::string& text) { return absl::InvalidArgumentError(text); }

std::string PathIn(const std::string& folder, const std::string& path) {
  return path.empty() || path[0] == '/' || folder.empty() ? path : folder + "/" + path;
}

absl::Status ReadClientAuth(const std::string& type, WebConfig* config) {
  // To ask without looking at the answer would prove nothing.
  if (type == "NoClientCert" || type == "RequestClientCert") return absl::OkStatus();
  config->asks_for_client_certificate = true;
  if (type == "VerifyClientCertIfGiven") return absl::OkStatus();
  config->requires_client_certificate = true;
  if (type == "RequireAndVerifyClientCert") return absl::OkStatus();
  return WrongConfig(
      absl::StrCat("client_auth_type: ", type,
                   " is not supported; there are NoClientCert, VerifyClientCertIfGiven "
                   "and RequireAndVerifyClientCert"));
}

absl::Status ReadVersion(const std::string& version, WebConfig* config) {
  config->needs_tls13 = version == "TLS13";
  if (version == "TLS13" || version == "TLS12") return absl::OkStatus();
  return WrongConfig(absl::StrCat("min_version: ", version, " is not supported; TLS12 or TLS13"));
}

absl::Status ReadUsers(const YAML::Node& users, WebConfig* config) {
  for (const auto& user : users) {
    const auto name = user.first.as<std::string>();
    const auto hash = user.second.as<std::string>();
    const absl::Status status = CheckPasswordHash(hash);
    if (!status.ok()) {
      return WrongConfig(absl::StrCat("user ", name, ": ", std::string(status.message())));
    }
    config->users[name] = hash;
  }
  return absl::OkStatus();
}

// The headers that Prometheus allows here.
constexpr std::array<const char*, 5> kHeaders = {"Strict-Transport-Security",
                                                 "Content-Security-Policy", "X-Frame-Options",
                                                 "X-Content-Type-Options", "X-XSS-Protection"};

absl::Status ReadHeaders(const YAML::Node& headers, WebConfig* config) {
  for (const auto& header : headers) {
    const auto name = header.first.as<std::string>();
    const auto value = header.second.as<std::string>();
    if (std::find(kHeaders.begin(), kHeaders.end(), name) == kHeaders.end()) {
      return WrongConfig(absl::StrCat("headers: ", name, " cannot be set; there are ",
                                      absl::StrJoin(kHeaders, ", ")));
    }
    const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
    if (std::any_of(value.begin(), value.end(), is_control)) {
      return WrongConfig(absl::StrCat("headers: the value of ", name, " is not one line"));
    }
    config->headers.emplace_back(name, value);
  }
  return absl::OkStatus();
}

const std::vector<Key> kTlsKeys = {
    {"cert_file",
     [](const YAML::Node& value, const std::string& folder, WebConfig* config) {
       config->cert_file = PathIn(folder, value.as<std::string>());
       return absl::OkStatus();
     }},
    {"key_file",
     [](const YAML::Node& value, const std::string& folder, WebConfig* config) {
       config->key_file = PathIn(folder, value.as<std::string>());
       return absl::OkStatus();
     }},
    {"client_ca_file",
     [](const YAML::Node& value, const std::string& folder, WebConfig* config) {
       config->client_ca_file = PathIn(folder, value.as<std::string>());
       return absl::OkStatus();
     }},
    {"client_auth_type",
     [](const YAML::Node& value, const std::string&, WebConfig* config) {
       return ReadClientAuth(value.as<std::string>(), config);
     }},
    {"client_allowed_sans",
     [](const YAML::Node& value, const std::string&, WebConfig* config) {
       config->client_sans = value.as<std::vector<std::string>>();
       return absl::OkStatus();
     }},
    {"min_version", [](const YAML::Node& value, const std::string&,
                       WebConfig* config) { return ReadVersion(value.as<std::string>(), config); }},
};

const std::vector<Key> kHttpKeys = {
    // The page speaks HTTP/1.1 only, whatever is wanted.
    {"http2",
     [](const YAML::Node& value, const std::string&, WebConfig*) {
       (void)value.as<bool>();
       return absl::OkStatus();
     }},
    {"headers", [](const YAML::Node& value, const std::string&,
                   WebConfig* config) { return ReadHeaders(value, config); }},
};

absl::Status ReadSection(const std::string& section, const YAML::Node& node,
                         const std::vector<Key>& keys, const std::string& folder,
                         WebConfig* config) {
  if (!node.IsMap()) return WrongConfig(absl::StrCat(section, " has no keys"));
  for (const auto& entry : node) {
    const auto name = entry.first.as<std::string>();
    const auto key = std::find_if(keys.begin(), keys.end(),
                                  [&name](const Key& known) { return name == known.name; });
    if (key == keys.end()) {
      const auto format = [](std::string* out, const Key& known) { out->append(known.name); };
      return WrongConfig(absl::StrCat(section, ": the key ", name, " is not supported; there are ",
                                      absl::StrJoin(keys, ", ", format)));
    }
    const absl::Status status = key->read(entry.second, folder, config);
    if (!status.ok())
      return WrongConfig(absl::StrCat(section, ": ", std::string(status.message())));
  }
  return absl::OkStatus();
}

absl::Status CheckTls(const WebConfig& config) {
  if (!config.has_tls) return absl::OkStatus();
  if (config.cert_file.empty() || config.key_file.empty()) {
    return WrongConfig("tls_server_config needs cert_file and key_file");
  }
  if (config.asks_for_client_certificate && config.client_ca_file.empty()) {
    return WrongConfig("tls_server_config: this client_auth_type needs client_ca_file");
  }
  if (!config.asks_for_client_certificate &&
      !(config.client_ca_file.empty() && config.client_sans.empty())) {
    return WrongConfig(
        "tls_server_config: client_ca_file and client_allowed_sans need "
        "client_auth_type: RequireAndVerifyClientCert");
  }
  return absl::OkStatus();
}

absl::Status Read(const YAML::Node& root, const std::string& folder, WebConfig* config) {
  if (root.IsNull()) return absl::OkStatus();
  if (!root.IsMap()) return WrongConfig("not a list of keys");
  for (const auto& entry : root) {
    const auto name = entry.first.as<std::string>();
    absl::Status status;
    if (name == "tls_server_config") {
      config->has_tls = true;
      status = ReadSection(name, entry.second, kTlsKeys, folder, config);
    } else if (name == "http_server_config") {
      status = ReadSection(name, entry.second, kHttpKeys, folder, config);
    } else if (name == "basic_auth_users") {
      status = ReadUsers(entry.second, config);
    } else {
      status =
          WrongConfig(absl::StrCat("the key ", name,
                                   " is not supported; there are "
                                   "tls_server_config, basic_auth_users and http_server_config"));
    }
    if (!status.ok()) return status;
  }
  return CheckTls(*config);
}

}  // namespace

absl::StatusOr<WebConfig> ParseWebConfig(const std::string& text, const std::string& folder) {
  try {
    WebConfig config;
    const absl::Status status = Read(YAML::Load(text), folder, &config);
    if (!status.ok()) return status;
    return config;
  } catch (const YAML::Exception& problem) {
    return WrongConfig(absl::StrCat("not YAML of the expected form: ", problem.what()));
  }
}

}  // namespace rollcall
