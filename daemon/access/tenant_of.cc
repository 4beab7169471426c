// SPDX-License-Identifier: Apache-2.0
#include "daemon/access/tenant_of.h"

#include <algorithm>

#include "base/names.h"
#include "daemon/model/job_key.h"
#include "security/identity.h"

namespace rollcall {

bool MayWrite(const std::string& tenant, const std::vector<std::string>& allowed) {
  return std::any_of(allowed.begin(), allowed.end(),
                     [&tenant](const std::string& name) { return name == kAll || name == tenant; });
}

std::optional<std::string> TenantOf(const std::string& claimed,
                                    const std::vector<std::string>& allowed) {
  const bool is_only = allowed.size() == 1 && allowed.front() != kAll;
  std::string tenant = claimed;
  if (claimed.empty()) tenant = is_only ? allowed.front() : kDefaultTenant;
  if (!IsTenantName(tenant) || !MayWrite(tenant, allowed)) return std::nullopt;
  return tenant;
}

}  // namespace rollcall
