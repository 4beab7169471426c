// SPDX-License-Identifier: Apache-2.0
// The roles that `--grant` gives for names that other systems have given, such as SPIFFE ids, names
// in certificates and Kubernetes service accounts. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "security/identity.h"

namespace rollcall {

// What kind of name a caller has. A name of one kind never matches a pattern of another kind.
enum class SubjectKind : uint8_t {
  kUri,         // URI SAN of a certificate. Its parts are separated by '/'.
  kDnsName,     // DNS SAN of a certificate: parts separated by '.', case does not matter
  kJwtSubject,  // claim "sub" of a JWT: parts separated by ':'
};

struct Subject {
  SubjectKind kind = SubjectKind::kUri;
  std::string name;  // without "dns:" or "sub:"
};

struct Grant {
  Role role = Role::kViewer;
  SubjectKind kind = SubjectKind::kUri;
  std::string pattern;               // of names of that kind
  std::vector<std::string> tenants;  // never empty
  std::vector<std::string> hosts;    // as in Identity; empty for viewers and operators
};

// "ROLE=PATTERN[,tenant=T]...[,host=H]...". PATTERN is "dns:NAME", "sub:SUBJECT" or a URI; '*' in
// it stands for one or more characters of one part. An error names what is wrong and shows the
// form.
absl::StatusOr<Grant> ParseGrant(absl::string_view text);

// The first of `grants` whose pattern fits one of `subjects`, or nullptr. Two grants are never
// added up: the role of one with the tenants of the other would be more than either gives.
const Grant* FindGrant(const std::vector<Grant>& grants, const std::vector<Subject>& subjects);

}  // namespace rollcall
