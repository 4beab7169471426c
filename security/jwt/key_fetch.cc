// SPDX-License-Identifier: Apache-2.0
#include "security/jwt/key_fetch.h"

#include <httplib.h>

#include <chrono>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/peer_address.h"
#include "base/secret_file.h"
#include "base/url_parts.h"
#include "base/watched_file.h"
#include "security/http_watchdog.h"

namespace rollcall {
namespace {

using Clock = std::chrono::steady_clock;

constexpr time_t kPatienceS = 5;  // for a connection, and for each piece of the answer
constexpr std::chrono::seconds kWholeAnswer{20};
constexpr size_t kMaxBytes = 1 << 20;           // of the keys
constexpr uint64_t kMaxNetworkBytes = 4 << 20;  // with headers and TLS

// "http://127.0.0.1:8001", "http://[::1]:8001", "http://localhost:8001".
bool IsLoopbackOrigin(absl::string_view origin) {
  absl::ConsumePrefix(&origin, "http://");
  if (origin == "localhost" || absl::StartsWith(origin, "localhost:")) return true;
  const bool is_v6 = absl::StartsWith(origin, "[");
  const bool has_port = is_v6 ? !absl::EndsWith(origin, "]") : absl::StrContains(origin, ":");
  const auto address =
      ParsePeer(absl::StrCat(is_v6 ? "ipv6:" : "ipv4:", origin, has_port ? "" : ":80"));
  return address.has_value() && address->IsLoopback();
}

absl::StatusOr<httplib::Headers> MakeHeaders(const KeyLocation& location) {
  if (location.token_file.empty()) return httplib::Headers();
  const absl::StatusOr<std::string> token = ReadSecretFile(location.token_file, "token");
  if (!token.ok()) return token.status();
  for (const char byte : *token) {
    if (!absl::ascii_isgraph(static_cast<unsigned char>(byte))) {
      return absl::InvalidArgumentError(absl::StrCat(location.token_file, " holds no token"));
    }
  }
  return httplib::Headers{{"Authorization", absl::StrCat("Bearer ", *token)}};
}

absl::Status Explain(const httplib::Result& result, const std::string& url, bool is_too_long) {
  if (is_too_long) {
    return absl::UnavailableError(absl::StrCat(url, " sends more than 1 MiB, or too slowly"));
  }
  if (!result) {
    return absl::UnavailableError(
        absl::StrCat("cannot fetch ", url, ": ", httplib::to_string(result.error())));
  }
  if (result->status == 200) return absl::OkStatus();
  const bool wants_token = result->status == 401 || result->status == 403;
  return absl::UnavailableError(absl::StrCat(
      url, " answers ", result->status,
      wants_token ? ": the API server wants the pod's token, --jwks-token-file=FILE" : ""));
}

// "10.0.0.1" of "https://10.0.0.1:6443".
std::string HostOf(absl::string_view origin) {
  origin.remove_prefix(origin.find("://") + 3);
  if (absl::ConsumePrefix(&origin, "[")) return std::string(origin.substr(0, origin.find(']')));
  return std::string(origin.substr(0, origin.find(':')));
}

// httplib compares the certificate's names with the host itself, of IPv4 addresses not strictly.
// OpenSSL does so before.
void DemandHost(httplib::Client* client, const std::string& host) {
  SSL_CTX* context = client->ssl_context();
  if (context == nullptr) return;  // no TLS
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  X509_VERIFY_PARAM* rules = SSL_CTX_get0_param(context);
  if (X509_VERIFY_PARAM_set1_ip_asc(rules, host.c_str()) != 1) {
    X509_VERIFY_PARAM_set1_host(rules, host.c_str(), host.size());
  }
}

}  // namespace

absl::Status CheckKeyUrl(const std::string& url) {
  if (absl::StrContains(url, "@")) {
    return absl::InvalidArgumentError("the URL of --jwks has a user: use --jwks-token-file=FILE");
  }
  const bool is_https = absl::StartsWith(url, "https://") && SplitUrl(url).first != "https://";
  if (is_https) return absl::OkStatus();
  if (absl::StartsWith(url, "http://") && IsLoopbackOrigin(SplitUrl(url).first)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      url,
      " is not an https:// URL: an attacker on the way can replace the keys; use https://, or "
      "--jwks=FILE"));
}

absl::StatusOr<std::string> FetchKeys(const KeyLocation& location) {
  const absl::Status url_status = CheckKeyUrl(location.url);
  if (!url_status.ok()) return url_status;
  const absl::StatusOr<httplib::Headers> headers = MakeHeaders(location);
  if (!headers.ok()) return headers.status();
  const auto [origin, path] = SplitUrl(location.url);
  httplib::Client client(origin);
  client.set_connection_timeout(kPatienceS);
  client.set_read_timeout(kPatienceS);
  client.set_write_timeout(kPatienceS);
  client.set_follow_location(false);
  client.enable_server_certificate_verification(true);
  DemandHost(&client, HostOf(origin));
  if (!location.ca_file.empty()) client.set_ca_cert_path(location.ca_file.c_str());
  const HttpWatchdog watchdog(&client, {kMaxNetworkBytes, kWholeAnswer});
  const Clock::time_point deadline = Clock::now() + kWholeAnswer;
  std::string body;
  bool is_too_long = false;
  const httplib::Result result =
      client.Get(path.c_str(), *headers, [&](const char* data, size_t size) {
        is_too_long = body.size() + size > kMaxBytes || Clock::now() > deadline;
        if (!is_too_long) body.append(data, size);
        return !is_too_long;
      });
  const absl::Status status = Explain(result, location.url, is_too_long);
  return status.ok() ? absl::StatusOr<std::string>(std::move(body)) : status;
}

}  // namespace rollcall
