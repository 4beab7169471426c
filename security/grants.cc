// SPDX-License-Identifier: Apache-2.0
#include "security/grants.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/names.h"

namespace rollcall {
namespace {

constexpr char kForm[] =
    "--grant=ROLE=PATTERN[,tenant=T]...[,host=H]..., for example "
    "--grant=agent=spiffe://corp.example/ns/rollcall/sa/agent,host=*";

absl::Status Wrong(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("--grant=", text, ": ", why, "; write ", kForm));
}

char Separator(SubjectKind kind) {
  switch (kind) {
    case SubjectKind::kUri:
      return '/';
    case SubjectKind::kDnsName:
      return '.';
    case SubjectKind::kJwtSubject:
      return ':';
  }
  return '/';
}

// '*' stands for one or more characters.
bool MatchesPart(absl::string_view pattern, absl::string_view text) {
  size_t p = 0, t = 0;
  size_t after_star = absl::string_view::npos, star_end = 0;  // the last '*' and where it ends
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      after_star = ++p;
      star_end = ++t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (after_star != absl::string_view::npos) {
      p = after_star;
      t = ++star_end;
    } else {
      return false;
    }
  }
  return p == pattern.size();
}

bool Matches(const Grant& grant, const Subject& subject) {
  if (grant.kind != subject.kind) return false;
  std::string pattern = grant.pattern, name = subject.name;
  if (grant.kind == SubjectKind::kDnsName) {
    absl::AsciiStrToLower(&pattern);
    absl::AsciiStrToLower(&name);
  }
  const std::vector<absl::string_view> patterns = absl::StrSplit(pattern, Separator(grant.kind));
  const std::vector<absl::string_view> parts = absl::StrSplit(name, Separator(grant.kind));
  return std::equal(patterns.begin(), patterns.end(), parts.begin(), parts.end(), MatchesPart);
}

std::pair<SubjectKind, absl::string_view> SplitKind(absl::string_view pattern) {
  if (absl::ConsumePrefix(&pattern, "dns:")) return {SubjectKind::kDnsName, pattern};
  if (absl::ConsumePrefix(&pattern, "sub:")) return {SubjectKind::kJwtSubject, pattern};
  return {SubjectKind::kUri, pattern};
}

// Reads "tenant=T" or "host=H". Returns what is wrong, "" if nothing is.
std::string ReadScope(absl::string_view scope, Grant* grant) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(scope, absl::MaxSplits('=', 1));
  const auto [key, value] = parts;
  if (key == "tenant") {
    if (value != kAll && !IsTenantName(value)) return absl::StrCat(value, " is not a tenant");
    grant->tenants.emplace_back(value);
    return "";
  }
  if (key == "host") {
    if (grant->role != Role::kAgent) return "only an agent has a host";
    if (value != kAll && !IsHostPattern(value)) return absl::StrCat(value, " is not a host");
    grant->hosts.emplace_back(value);
    return "";
  }
  return absl::StrCat(scope, " is neither tenant=T nor host=H");
}

}  // namespace

absl::StatusOr<Grant> ParseGrant(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ',');
  const size_t equals = parts[0].find('=');
  if (equals == absl::string_view::npos) return Wrong(text, "the role or the pattern is missing");
  const std::string role_name(parts[0].substr(0, equals));
  const std::optional<Role> role = ParseRole(role_name);
  if (!role.has_value()) {
    return Wrong(text, absl::StrCat("the role '", role_name, "' is not agent, viewer or operator"));
  }
  Grant grant;
  grant.role = *role;
  const auto [kind, pattern] = SplitKind(parts[0].substr(equals + 1));
  grant.kind = kind;
  grant.pattern = std::string(pattern);
  if (pattern.empty()) return Wrong(text, "the pattern is empty");
  if (kind == SubjectKind::kUri && pattern.find(':') == absl::string_view::npos) {
    return Wrong(text, "the pattern is not a URI, dns:NAME or sub:SUBJECT");
  }
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::string problem = ReadScope(parts[i], &grant);
    if (!problem.empty()) return Wrong(text, problem);
  }
  if (grant.tenants.empty()) grant.tenants = {kTenantIfUnnamed};
  return grant;
}

const Grant* FindGrant(const std::vector<Grant>& grants, const std::vector<Subject>& subjects) {
  for (const Grant& grant : grants) {
    const auto fits = [&grant](const Subject& subject) { return Matches(grant, subject); };
    if (std::any_of(subjects.begin(), subjects.end(), fits)) return &grant;
  }
  return nullptr;
}

}  // namespace rollcall
