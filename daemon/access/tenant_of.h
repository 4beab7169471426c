// SPDX-License-Identifier: Apache-2.0
// Finds the tenant of a process: what its agent claims, as far as the identity of the agent
// permits. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace rollcall {

// `allowed`, in both: the tenants that the agent may write; kAll (security/identity.h) for all.
bool MayWrite(const std::string& tenant, const std::vector<std::string>& allowed);

// `claimed`: by the process or its agent; empty means neither named a tenant. Without a claim the
// process belongs to the only allowed tenant, or to the default tenant if that is allowed. nullopt
// if the agent may not write this tenant, or it is not a name of a tenant, or it is not clear which
// tenant is meant.
std::optional<std::string> TenantOf(const std::string& claimed,
                                    const std::vector<std::string>& allowed);

}  // namespace rollcall
