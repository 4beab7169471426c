// SPDX-License-Identifier: Apache-2.0
// Which texts may name a tenant, a host or a token. Certificates, tokens and grants share these
// rules. Pure.
#pragma once

#include "absl/strings/string_view.h"

namespace rollcall {

// The tenant of an identity that names none.
inline constexpr char kTenantIfUnnamed[] = "default";

// 1 to 255 letters, digits, '.', '_' and '-'; neither "." nor "..".
bool IsPlainName(absl::string_view text);

// A plain name. "*" means all tenants, and "/" and ":" separate a tenant from other names
// ("team/train", "team:0a1b").
bool IsTenantName(absl::string_view text);

// A plain name without empty labels, or such a name after "*.". Not "*".
bool IsHostPattern(absl::string_view text);

// Whether a pattern stands for the host: its own name, in any case; "*.nodes.example" for one label
// more, as in a certificate.
bool MatchesHostPattern(absl::string_view pattern, absl::string_view host);

}  // namespace rollcall
