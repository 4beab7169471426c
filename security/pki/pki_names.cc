// SPDX-License-Identifier: Apache-2.0
#include "security/pki/pki_names.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/names.h"
#include "base/server_address.h"
#include "security/identity.h"

namespace rollcall {
namespace {

constexpr size_t kMaxName = 64;   // of a common name in X.509
constexpr size_t kMaxHost = 253;  // of a name in DNS
constexpr size_t kMaxUri = 2048;  // of a SPIFFE id

struct RoleRules {
  const char* role;
  bool has_hosts;
  bool has_tenants;
};

constexpr std::array<RoleRules, 4> kRoles = {{
    {"agent", true, true},
    {"daemon", true, false},
    {"operator", false, true},
    {"viewer", false, true},
}};

// The characters of a segment of a SPIFFE id.
bool IsSegment(absl::string_view text, size_t longest) {
  return text.size() <= longest && IsPlainName(text);
}

absl::Status Wrong(const char* flag, absl::string_view value, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(flag, "=", value, ": ", why));
}

absl::StatusOr<RoleRules> RulesOf(const std::string& role) {
  for (const RoleRules& rules : kRoles) {
    if (role == rules.role) return rules;
  }
  return Wrong("--role", role, "not one of agent, daemon, operator, viewer");
}

absl::Status CheckHost(const std::string& host, bool is_daemon) {
  if (IsIpAddress(host)) {
    return is_daemon ? absl::OkStatus()
                     : Wrong("--host", host,
                             "an agent is identified by its host name, not by an address");
  }
  return host.size() <= kMaxHost && IsHostPattern(host)
             ? absl::OkStatus()
             : Wrong("--host", host, "not the name of a host");
}

absl::Status CheckRequest(const PkiRequest& request, const RoleRules& rules) {
  if (rules.has_hosts && request.hosts.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--role=", request.role, " needs --host=NAME, ",
                     request.role == "daemon" ? "each name and address by which agents reach it"
                                              : "the host that the agent speaks for"));
  }
  if (!rules.has_hosts && !request.hosts.empty()) {
    return Wrong("--host", request.hosts.front(), absl::StrCat("a ", request.role, " has no host"));
  }
  if (!rules.has_tenants && !request.tenants.empty()) {
    return Wrong("--tenant", request.tenants.front(), "a daemon serves all tenants");
  }
  for (const std::string& host : request.hosts) {
    if (absl::Status status = CheckHost(host, request.role == "daemon"); !status.ok()) {
      return status;
    }
  }
  for (const std::string& tenant : request.tenants) {
    if (tenant != kAll && !IsTenantName(tenant)) {
      return Wrong("--tenant", tenant, "letters, digits, '.', '-' and '_' only, or '*' for all");
    }
  }
  return absl::OkStatus();
}

// A wildcard is a DNS name only: a SPIFFE id cannot hold "*".
std::string UriOf(const PkiRequest& request, const std::string& domain) {
  std::string uri = absl::StrCat("spiffe://", domain, "/rollcall/", request.role);
  for (const std::string& host : request.hosts) {
    if (request.role == "agent" && host.front() != '*') absl::StrAppend(&uri, "/host/", host);
  }
  for (const std::string& tenant : request.tenants) {
    if (tenant != kAll) absl::StrAppend(&uri, "/tenant/", tenant);
  }
  const auto& tenants = request.tenants;
  if (std::find(tenants.begin(), tenants.end(), kAll) != tenants.end()) {
    absl::StrAppend(&uri, "/all-tenants");
  }
  return uri;
}

}  // namespace

absl::Status CheckPkiName(const std::string& name) {
  if (IsSegment(name, kMaxName) && name.front() != '.' && name.front() != '-' && name != "ca") {
    return absl::OkStatus();
  }
  return Wrong("--name", name,
               "the name of the files: at most 64 letters, digits, '.', '-' and '_', not `ca`");
}

absl::Status CheckPkiDomain(const std::string& domain) {
  if (IsSegment(domain, kMaxHost) && absl::AsciiStrToLower(domain) == domain) {
    return absl::OkStatus();
  }
  return Wrong("--domain", domain, "lower-case letters, digits, '.', '-' and '_' only");
}

absl::StatusOr<PkiNames> NamesFor(const PkiRequest& request, const std::string& domain) {
  const absl::StatusOr<RoleRules> rules = RulesOf(request.role);
  if (!rules.ok()) return rules.status();
  if (absl::Status status = CheckRequest(request, *rules); !status.ok()) return status;
  PkiNames names;
  names.name = !request.name.empty()     ? request.name
               : request.role == "agent" ? request.hosts.front()
                                         : request.role;
  if (absl::Status status = CheckPkiName(names.name); !status.ok()) return status;
  names.uri = UriOf(request, domain);
  if (names.uri.size() > kMaxUri) {
    return absl::InvalidArgumentError(
        "too many hosts and tenants for one certificate: issue several, or use --host='*.DOMAIN'");
  }
  for (const std::string& host : request.hosts) {
    (IsIpAddress(host) ? names.ip_addresses : names.dns_names).push_back(host);
  }
  return names;
}

std::string RoleInUri(std::string_view uri) {
  const std::vector<std::string> parts =
      absl::StrSplit(absl::string_view(uri.data(), uri.size()), '/');
  const bool ours = parts.size() > 4 && parts[0] == "spiffe:" && parts[3] == "rollcall";
  return ours && RulesOf(parts[4]).ok() ? parts[4] : "";
}

}  // namespace rollcall
