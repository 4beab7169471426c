// SPDX-License-Identifier: Apache-2.0
// The names that `rollcall pki` puts into certificates:
// spiffe://DOMAIN/rollcall/ROLE[/host/HOST]...
// [/tenant/TENANT]...[/all-tenants]. Pure. Errors name the flag.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace rollcall {

struct PkiRequest {
  std::string role;                  // "agent", "viewer", "operator", "daemon"
  std::vector<std::string> hosts;    // of an agent or a daemon; addresses of a daemon only
  std::vector<std::string> tenants;  // or "*"
  std::string name;                  // of the files; empty: the host of an agent, else the role
  int days = 365;
};

struct PkiNames {
  std::string name;  // of the files, and the common name
  std::string uri;
  std::vector<std::string> dns_names;
  std::vector<std::string> ip_addresses;
};

absl::StatusOr<PkiNames> NamesFor(const PkiRequest& request, const std::string& domain);

// Checks the name that the files of a certificate get.
absl::Status CheckPkiName(const std::string& name);
absl::Status CheckPkiDomain(const std::string& domain);

// The role in a URI as above; "" if there is none.
std::string RoleInUri(std::string_view uri);

}  // namespace rollcall
