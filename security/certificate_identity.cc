// SPDX-License-Identifier: Apache-2.0
#include "security/certificate_identity.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/names.h"

namespace rollcall {
namespace {

constexpr char kIdentityForm[] =
    "spiffe://DOMAIN/rollcall/ROLE[/host/HOST]...[/tenant/TENANT]...[/all-tenants]";
constexpr size_t kLongestUri = 2048;  // by the SPIFFE standard
constexpr size_t kMostNames = 256;

absl::Status Malformed(absl::string_view uri, absl::string_view why) {
  return absl::UnauthenticatedError(
      absl::StrCat("the certificate's name ", absl::CHexEscape(uri.substr(0, kLongestUri)),
                   " gives no role: ", why, "; the form is ", kIdentityForm));
}

// A URI of Rollcall's: its path begins with /rollcall.
struct RollcallUri {
  absl::string_view domain;
  std::vector<absl::string_view> parts;  // of the path, after /rollcall
};

std::optional<RollcallUri> SplitUri(absl::string_view uri) {
  if (!absl::ConsumePrefix(&uri, "spiffe://")) return std::nullopt;
  const std::vector<absl::string_view> parts = absl::StrSplit(uri, '/');
  if (parts.size() < 2 || parts[1] != "rollcall" || !IsPlainName(parts[0])) return std::nullopt;
  return RollcallUri{parts[0], {parts.begin() + 2, parts.end()}};
}

bool Counts(const RollcallUri& uri, const std::vector<std::string>& trust_domains) {
  return trust_domains.empty() ||
         std::find(trust_domains.begin(), trust_domains.end(), uri.domain) != trust_domains.end();
}

absl::StatusOr<Identity> ReadPath(absl::string_view uri,
                                  const std::vector<absl::string_view>& parts) {
  if (uri.size() > kLongestUri) return Malformed(uri, "it is too long");
  if (!std::all_of(parts.begin(), parts.end(), IsPlainName)) {
    return Malformed(uri,
                     "a part of the path is empty or has other characters than "
                     "letters, digits, '.', '_' and '-'");
  }
  const std::optional<Role> role = parts.empty() ? std::nullopt : ParseRole(std::string(parts[0]));
  if (!role.has_value()) return Malformed(uri, "the role is not agent, viewer or operator");
  Identity identity;
  identity.roles = {*role};
  bool all_tenants = false;
  for (size_t i = 1; i < parts.size();) {
    const bool has_value = i + 1 < parts.size();
    if (parts[i] == "host" && has_value && *role == Role::kAgent && IsHostPattern(parts[i + 1])) {
      identity.hosts.emplace_back(parts[i + 1]);
      i += 2;
    } else if (parts[i] == "tenant" && has_value) {
      identity.tenants.emplace_back(parts[i + 1]);
      i += 2;
    } else if (parts[i] == "all-tenants" && !all_tenants) {
      all_tenants = true;
      ++i;
    } else {
      return Malformed(uri, absl::StrCat("it is not clear what '", parts[i], "' means there"));
    }
  }
  if (all_tenants && !identity.tenants.empty()) {
    return Malformed(uri, "it names all tenants, and single ones");
  }
  if (all_tenants) identity.tenants = {kAll};
  return identity;
}

absl::StatusOr<std::optional<Identity>> ReadRollcallName(
    const CertificateNames& certificate, const std::vector<std::string>& trust_domains) {
  std::optional<Identity> found;
  for (const std::string& uri : certificate.uris) {
    const std::optional<RollcallUri> own = SplitUri(uri);
    if (!own.has_value() || !Counts(*own, trust_domains)) continue;
    if (found.has_value()) return Malformed(uri, "the certificate has two names of Rollcall's");
    absl::StatusOr<Identity> identity = ReadPath(uri, own->parts);
    if (!identity.ok()) return identity.status();
    found = *std::move(identity);
    found->name = absl::StrCat("certificate ", uri);
  }
  return found;
}

std::vector<Subject> Subjects(const CertificateNames& certificate) {
  std::vector<Subject> subjects;
  for (const std::string& uri : certificate.uris) subjects.push_back({SubjectKind::kUri, uri});
  for (const std::string& name : certificate.dns_names) {
    subjects.push_back({SubjectKind::kDnsName, name});
  }
  return subjects;
}

std::string InWords(const CertificateNames& certificate) {
  std::vector<std::string> names;
  for (const std::string& uri : certificate.uris) names.push_back(absl::CHexEscape(uri));
  for (const std::string& dns : certificate.dns_names) {
    names.push_back(absl::StrCat("dns:", absl::CHexEscape(dns)));
  }
  return names.empty() ? "no name" : absl::StrJoin(names, ", ").substr(0, kLongestUri);
}

std::optional<Identity> FromGrants(const CertificateNames& certificate,
                                   const std::vector<Grant>& grants) {
  const Grant* grant = FindGrant(grants, Subjects(certificate));
  if (grant == nullptr) return std::nullopt;
  Identity identity;
  identity.name = absl::StrCat("certificate ", InWords(certificate));
  identity.roles = {grant->role};
  identity.tenants = grant->tenants;
  identity.hosts = grant->hosts;
  return identity;
}

void AddDnsHosts(const CertificateNames& certificate, Identity* identity) {
  for (const std::string& name : certificate.dns_names) {
    if (IsHostPattern(name)) identity->hosts.push_back(name);
  }
}

}  // namespace

absl::StatusOr<Identity> IdentifyCertificate(const CertificateNames& certificate,
                                             const NameRules& rules) {
  if (certificate.uris.size() + certificate.dns_names.size() > kMostNames) {
    return absl::UnauthenticatedError(
        absl::StrCat("the certificate has more than ", kMostNames, " names"));
  }
  absl::StatusOr<std::optional<Identity>> own = ReadRollcallName(certificate, rules.trust_domains);
  if (!own.ok()) return own.status();
  const bool granted = !own->has_value();
  std::optional<Identity> identity =
      granted ? FromGrants(certificate, rules.grants) : *std::move(own);
  if (!identity.has_value()) {
    return absl::UnauthenticatedError(absl::StrCat(
        "the certificate (", InWords(certificate), ") gives no role",
        rules.trust_domains.empty()
            ? ""
            : absl::StrCat(" in the trust domain ", absl::StrJoin(rules.trust_domains, ", ")),
        ": issue one by `rollcall pki issue`, or start rollcalld with --grant=ROLE=PATTERN for one "
        "of its names"));
  }
  if (identity->Has(Role::kAgent) && (!granted || identity->hosts.empty())) {
    AddDnsHosts(certificate, &*identity);
  }
  if (identity->tenants.empty()) identity->tenants = {kTenantIfUnnamed};
  identity->expires_s = certificate.not_after_s;
  return *std::move(identity);
}

}  // namespace rollcall
