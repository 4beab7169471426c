// SPDX-License-Identifier: Apache-2.0
// The identity of a caller, and what it may do. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rollcall {

// What a caller may do. An operator may do all that a viewer may.
enum class Role : uint8_t {
  kAgent,     // sends ticks and stacks, for its own host and tenants
  kViewer,    // reads its tenants
  kOperator,  // takes stacks and acts
};

// "agent", "viewer", "operator".
std::string_view RoleName(Role role);
std::optional<Role> ParseRole(std::string_view name);

// Stands for all `tenants` or `hosts` of an identity.
inline constexpr char kAll[] = "*";

// The result of a successful authentication.
struct Identity {
  std::string name;         // for logs: "token ci", "certificate spiffe://…", "alice"
  std::vector<Role> roles;  // empty means the caller may do nothing
  // Names of hosts, or DNS wildcards such as "*.nodes.example", or "*".
  std::vector<std::string> hosts;
  std::vector<std::string> tenants;  // or "*"
  int64_t expires_s = 0;             // Unix time; 0 if never
  // Identifies what the caller presented: the same after a reload as long as it is valid.
  // "token SHA256", "certificate PEM", "" for what cannot be revoked.
  std::string credential;

  bool Has(Role role) const;
  bool MaySeeTenant(std::string_view tenant) const;
  bool MaySeeAllTenants() const;
  // True for a name in `hosts`, in capital letters or small ones. A name with its domain is not
  // that without: hosts of other domains have the same first label.
  bool MaySpeakFor(std::string_view host) const;
};

// May do everything: a caller inside this process, or the same user on this host.
Identity OwnerIdentity(std::string name);

}  // namespace rollcall
