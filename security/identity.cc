// SPDX-License-Identifier: Apache-2.0
#include "security/identity.h"

#include <array>
#include <utility>

#include "absl/strings/string_view.h"
#include "base/names.h"

namespace rollcall {
namespace {

struct NamedRole {
  Role role;
  std::string_view name;
};

constexpr std::array<NamedRole, 3> kRoles = {{
    {Role::kAgent, "agent"},
    {Role::kViewer, "viewer"},
    {Role::kOperator, "operator"},
}};

absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

bool MatchesHost(std::string_view pattern, std::string_view host) {
  return pattern == kAll || MatchesHostPattern(View(pattern), View(host));
}

bool Contains(const std::vector<std::string>& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

}  // namespace

std::string_view RoleName(Role role) {
  for (const NamedRole& known : kRoles) {
    if (known.role == role) return known.name;
  }
  return "nobody";
}

std::optional<Role> ParseRole(std::string_view name) {
  for (const NamedRole& known : kRoles) {
    if (known.name == name) return known.role;
  }
  return std::nullopt;
}

bool Identity::Has(Role role) const {
  return std::any_of(roles.begin(), roles.end(), [role](Role own) {
    return own == role || (own == Role::kOperator && role == Role::kViewer);
  });
}

bool Identity::MaySeeTenant(std::string_view tenant) const {
  return MaySeeAllTenants() || Contains(tenants, tenant);
}

bool Identity::MaySeeAllTenants() const { return Contains(tenants, kAll); }

bool Identity::MaySpeakFor(std::string_view host) const {
  return std::any_of(hosts.begin(), hosts.end(),
                     [host](const std::string& own) { return MatchesHost(own, host); });
}

Identity OwnerIdentity(std::string name) {
  return {std::move(name), {Role::kAgent, Role::kOperator}, {kAll}, {kAll}, 0, ""};
}

}  // namespace rollcall
