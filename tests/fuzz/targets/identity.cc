// SPDX-License-Identifier: Apache-2.0
// Names of callers: SANs of certificates, subjects of JWTs, and the grants that give them roles. A
// line of the input is a grant ("g"), a trust domain ("t"), a URI ("u"), a DNS name ("d") or a
// subject
// ("s").
#include <algorithm>

#include "base/names.h"
#include "fuzz_target.h"
#include "security/certificate_identity.h"
#include "security/grants.h"
#include "security/jwt/json_web_token.h"
#include "security/pki/pki_names.h"

namespace rollcall {
namespace fuzz {
namespace {

struct Names {
  NameRules rules;
  CertificateNames certificate;
  std::vector<std::string> subjects;
};

void AddLine(std::string_view line, Names* names) {
  if (line.empty()) return;
  const std::string text(line.substr(1));
  switch (line[0]) {
    case 'g':
      if (auto grant = ParseGrant(text); grant.ok()) names->rules.grants.push_back(*grant);
      return;
    case 't':
      return names->rules.trust_domains.push_back(text);
    case 'u':
      return names->certificate.uris.push_back(text);
    case 'd':
      return names->certificate.dns_names.push_back(text);
    case 's':
      return names->subjects.push_back(text);
    default:
      return;
  }
}

void Check(const Identity& identity) {
  Promise(identity.roles.size() == 1, "a caller has one role");
  Promise(!identity.tenants.empty(), "a caller has a tenant");
  Promise(identity.hosts.empty() || identity.Has(Role::kAgent), "agents only have hosts");
  for (const std::string& host : identity.hosts) {
    Promise(host == kAll || IsHostPattern(host), "hosts are names");
  }
  for (const std::string& tenant : identity.tenants) Promise(!tenant.empty(), "tenants have names");
}

// Without a grant, only Rollcall's own names in a trusted domain give a role.
bool MayGiveRole(const std::string& uri, const std::vector<std::string>& domains) {
  if (RoleInUri(uri).empty()) return false;
  return domains.empty() ||
         std::any_of(domains.begin(), domains.end(), [&uri](const std::string& domain) {
           return uri.find("://" + domain + "/rollcall/") != std::string::npos;
         });
}

void Run(Input input) {
  Names names;
  while (!input.empty()) AddLine(input.TakeLine(), &names);
  const std::vector<Grant>& grants = names.rules.grants;
  for (const Grant& grant : grants) {
    Promise(!grant.pattern.empty(), "a grant has a pattern");
    Promise(!grant.tenants.empty(), "a grant has a tenant");
  }
  const auto identity = IdentifyCertificate(names.certificate, names.rules);
  if (identity.ok()) Check(*identity);
  if (grants.empty() && identity.ok()) {
    const auto& uris = names.certificate.uris;
    Promise(std::any_of(uris.begin(), uris.end(),
                        [&names](const std::string& uri) {
                          return MayGiveRole(uri, names.rules.trust_domains);
                        }),
            "without a grant, only Rollcall's own names give a role");
  }
  for (const std::string& subject : names.subjects) {
    JwtClaims claims;
    claims.subject = subject;
    claims.node = names.certificate.dns_names.empty() ? "" : names.certificate.dns_names[0];
    const auto caller = IdentifyJwt(claims, grants);
    if (caller.ok()) Check(*caller);
  }
}

const Registered kTarget({"identity", 2048, &Run});

}  // namespace
}  // namespace fuzz
}  // namespace rollcall
